import LocalCluster
import Model
import ProjectDocuments
import TestSupport
import Testing
import Yams

/// The console where it is deployed: its settings exist, and its port and its instances are the same in all files.
@Suite(.ownThreads) struct ConsoleDeploymentTests {
    private static let name = "lag-monitor"

    /// Variables that a console requires.
    private static let needed = ["URL", "PORT", "ISSUER", "CLIENT_ID", "CLIENT_SECRET", "ADMINISTRATORS"].map {
        "FIELDPOST_CONSOLE_\($0)"
    }

    /// Compose sets all required variables, empty by default; the systemd file lists them to be filled in.
    @Test func consoleHasItsRequiredVariables() throws {
        let compose = try #require(try Deployment.compose()[Self.name]).variables
        let systemd = try #require(try Deployment.systemd()[Self.name]).variables
        let kubernetes = try Deployment.kubernetesConsole()
        let filledIn = try #require(try Deployment.proposed()[Self.name]).union(systemd.keys)
        #expect(kubernetes.program == Self.name)
        for variable in Self.needed {
            #expect(compose[variable] != nil && filledIn.contains(variable), "\(variable)")
            #expect(kubernetes.variables[variable] != nil, "\(variable)")
        }
        let ports = [compose, systemd, kubernetes.variables].map { $0["FIELDPOST_CONSOLE_PORT"] }
        #expect(Set(ports).count == 1)
        #expect(kubernetes.variables["FIELDPOST_CONSOLE_CLIENT_SECRET"] == "…", "the value comes from a secret")
        // Without these variables there is no console, and no port is opened.
        #expect(systemd["FIELDPOST_CONSOLE_URL"] == nil)
        #expect(try Deployment.kubernetes()[Self.name]?.variables["FIELDPOST_CONSOLE_URL"] == nil)
    }

    /// A service does not start with an unknown setting, including one that was commented out before.
    @Test func commentedSettingsExist() throws {
        var count = 0
        for (service, variables) in try Deployment.proposed() {
            let own = try SettingReference.variables(of: service)
            #expect(variables.subtracting(own) == [], "\(service)")
            count += variables.count
        }
        #expect(count > 5)
        let console = try Deployment.kubernetesConsole()
        let own = try SettingReference.variables(of: console.program)
        #expect(Set(console.variables.keys).subtracting(own) == [])
    }

    @Test func composeConsoleListsEveryService() throws {
        let text = try #require(try Deployment.compose()[Self.name]?.variables["FIELDPOST_CONSOLE_SERVICES"])
        let listed = text.split(separator: ",").map { $0.trimmingPrefix(" ") }
        let all = Services.all.map { "\($0.name)=http://\($0.name):\($0.localAdminPort)" }
        #expect(Set(listed.map(String.init)) == Set(all))
    }

    /// The example of the secrets file lists all variables that compose reads from it.
    @Test func exampleListsVariablesOfCompose() throws {
        let compose = try #require(projectText("deploy/compose.yaml"))
        let example = try #require(projectText("deploy/compose.env.example"))
        let taken = Set(compose.matches(of: /\$\{([A-Z_]+):/).map { String($0.1) })
        let listed = Set(example.matches(of: /(?m)^#?([A-Z_]+)=/).map { String($0.1) })
        // Compose itself reads this one.
        #expect(taken.union(["COMPOSE_PROFILES"]) == listed)
    }

    /// Administrators reach the console only through the ingress; the identity provider is outside the cluster.
    @Test func consolePodHasNetworkAccess() throws {
        let folder = "deploy/kubernetes/console"
        let template = try ProjectDocument("\(folder)/lag-monitor.yaml").root["spec"]?["template"]
        #expect(template?["metadata"]?["labels"]?["fieldpost/outside"]?.string == "true")
        let port = template?["spec"]?["containers"]?[0]?["ports"]?[0]
        let listening = try Deployment.kubernetesConsole().variables["FIELDPOST_CONSOLE_PORT"]
        #expect(port?["containerPort"]?.int.map { "\($0)" } == listening)
        let rule = try ProjectDocument("\(folder)/network.yaml").root["spec"]?["ingress"]?[0]
        #expect(rule?["from"]?.sequence?.isEmpty == false, "not from everywhere")
        let target = try ProjectDocument("\(folder)/service.yaml").root["spec"]?["ports"]?[0]?["targetPort"]
        #expect(port?["name"]?.string == "console" && rule?["ports"]?[0]?["port"] == "console" && target == "console")
    }
}
