import Model
import ProjectDocuments
import Testing
import Yams

/// The configuration of a service in a deployment file.
struct Deployed: Equatable {
    /// The executable.
    var program: String
    /// Environment variables in addition to those of all services.
    var variables: [String: String]
}

/// The deployment files, parsed into the configuration of the services.
enum Deployment {
    /// Reads `deploy/compose.yaml`: the services with an admin port.
    static func compose() throws -> [String: Deployed] {
        let root = try ProjectDocument("deploy/compose.yaml").root
        var found: [String: Deployed] = [:]
        for (name, service) in root["services"]?.members ?? [] {
            let variables = merged(service["environment"])
            guard variables["FIELDPOST_ADMIN_PORT"] != nil else { continue }
            #expect(service["command"]?.sequence?.count == 1, "\(name): a service has no arguments")
            found[name] = Deployed(program: service["command"]?[0]?.string ?? "", variables: variables)
        }
        return found
    }

    /// Reads `deploy/systemd`: the units of the target, each with its own settings.
    static func systemd() throws -> [String: Deployed] {
        let target = try #require(projectText("deploy/systemd/fieldpost.target"))
        var found: [String: Deployed] = [:]
        for unit in target.matches(of: /(?m)^Wants=fieldpost@(.+)\.service$/) {
            let name = String(unit.1)
            let files = ["fieldpost", name].map { projectText("deploy/systemd/\($0).env") }
            let lines = try files.flatMap { try #require($0, "\(name).env").matches(of: /(?m)^([A-Z_]+)=(.*)$/) }
            let variables = lines.map { (String($0.1), String($0.2)) }
            found[name] = Deployed(program: name, variables: Dictionary(variables) { $1 })
        }
        return found
    }

    /// Reads `deploy/kubernetes/services`: the deployments, each in a file of its name.
    static func kubernetes() throws -> [String: Deployed] {
        var found: [String: Deployed] = [:]
        for (name, documents) in try kubernetesDocuments() {
            let deployment = try #require(documents.first { $0.isKind("Deployment") }, "\(name)")
            let container = try #require(deployment["spec"]?["template"]?["spec"]?["containers"]?[0])
            #expect(container["args"]?.sequence?.count == 1, "\(name): a service has no arguments")
            let variables = try common(of: container).merging(own(of: container)) { $1 }
            found[name] = Deployed(program: container["args"]?[0]?.string ?? "", variables: variables)
        }
        return found
    }

    /// Reads `deploy/kubernetes/console`: the settings of `lag-monitor` in addition to its base configuration.
    static func kubernetesConsole() throws -> Deployed {
        let folder = "deploy/kubernetes/console"
        let container = try ProjectDocument("\(folder)/lag-monitor.yaml")
            .root["spec"]?["template"]?["spec"]?["containers"]?[0]
        let name = try #require(container?["name"]?.string)
        let settings = merged(try ProjectDocument("\(folder)/settings.yaml").root["data"])
        return Deployed(program: name, variables: settings.merging(own(of: container)) { $1 })
    }

    /// The commented-out settings of the configuration files, by file.
    static func proposed() throws -> [String: Set<String>] {
        let services = Services.all.map { (path: "deploy/systemd/\($0.name).env", name: $0.name) }
        return try Dictionary(
            uniqueKeysWithValues: services.map { path, name in
                let lines = try #require(projectText(path)).matches(of: /(?m)^#([A-Z_]+)=/)
                return (name, Set(lines.map { String($0.1) }))
            })
    }

    /// The documents of each file that `kustomization.yaml` names, by the file's name.
    static func kubernetesDocuments() throws -> [String: [Node]] {
        let folder = "deploy/kubernetes/services"
        let files = try ProjectDocument("\(folder)/kustomization.yaml").root["resources"]?.texts ?? []
        return Dictionary(
            uniqueKeysWithValues: try files.map { file in
                let text = try #require(projectText("\(folder)/\(file)"), "\(file)")
                return (String(file.dropLast(".yaml".count)), Array(try Yams.compose_all(yaml: text)))
            })
    }

    /// The variables of a container; `…` for a value from another source.
    private static func own(of container: Node?) -> [String: String] {
        let variables = (container?["env"]?.sequence ?? []).map {
            ($0["name"]?.string ?? "", $0["value"]?.string ?? "…")
        }
        return Dictionary(variables) { $1 }
    }

    /// The settings of the config map that a container takes them from.
    private static func common(of container: Node) throws -> [String: String] {
        let isTaking = container["envFrom"]?.sequence?.contains { $0["configMapRef"]?["name"] == "fieldpost" } == true
        let text = try #require(projectText("deploy/kubernetes/setup/settings.yaml"))
        let maps = Array(try Yams.compose_all(yaml: text))
        let map = maps.first { $0["metadata"]?["name"] == "fieldpost" }
        return isTaking ? merged(map?["data"]) : [:]
    }

    /// Returns a mapping's texts and those of merged mappings (`<<`), which it can override.
    private static func merged(_ node: Node?) -> [String: String] {
        var texts: [String: String] = [:]
        for (name, value) in node?.members ?? [] {
            if name == "<<" { texts.merge(merged(value)) { own, _ in own } } else { texts[name] = value.string ?? "…" }
        }
        return texts
    }
}

extension Node {
    /// Whether it is a Kubernetes document of this kind.
    func isKind(_ kind: String) -> Bool { self["kind"]?.string == kind }
}
