import Model
import ProjectDocuments
import TestSupport
import Testing
import Yams

/// The console where it is deployed: its settings exist, and its port and its instances are the same in all files.
@Suite(.ownThreads) struct ConsoleDeploymentTests {
    private static let name = "lag-monitor"

    /// What a console cannot be without.
    private static let needed = ["URL", "PORT", "ISSUER", "CLIENT_ID", "CLIENT_SECRET", "ADMINISTRATORS"].map {
        "FIELDPOST_CONSOLE_\($0)"
    }

    /// Compose gives all of it, empty where it is not said; systemd's file has it to be filled in.
    @Test func aConsoleIsGivenWhatItNeeds() throws {
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
        #expect(kubernetes.variables["FIELDPOST_CONSOLE_CLIENT_SECRET"] == "…", "it is a secret's to say")
        // Without these there is none, and nothing listens.
        #expect(systemd["FIELDPOST_CONSOLE_URL"] == nil)
        #expect(try Deployment.kubernetes()[Self.name]?.variables["FIELDPOST_CONSOLE_URL"] == nil)
    }

    /// A setting that does not exist keeps a service from starting, also one that was a comment before.
    @Test func whatIsProposedExists() throws {
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

    @Test func composeAsksEveryServiceHowItIs() throws {
        let text = try #require(try Deployment.compose()[Self.name]?.variables["FIELDPOST_CONSOLE_SERVICES"])
        let asked = text.split(separator: ",").map { $0.trimmingPrefix(" ") }
        let all = Services.all.map { "\($0.name)=http://\($0.name):\($0.localAdminPort)" }
        #expect(Set(asked.map(String.init)) == Set(all))
    }

    /// What compose takes from its file of secrets is told in the example of that file.
    @Test func theExampleTellsOfWhatComposeTakes() throws {
        let compose = try #require(projectText("deploy/compose.yaml"))
        let example = try #require(projectText("deploy/compose.env.example"))
        let taken = Set(compose.matches(of: /\$\{([A-Z_]+):/).map { String($0.1) })
        let told = Set(example.matches(of: /(?m)^#?([A-Z_]+)=/).map { String($0.1) })
        #expect(taken == told)
    }

    /// Whoever administers comes in by the ingress alone; the provider is outside.
    @Test func theConsolesPodMayTalk() throws {
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
