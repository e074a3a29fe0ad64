import Foundation
import Model

/// The folder, the ports and the secrets of a cluster.
package struct ClusterHome: Sendable {
    package let folder: ClusterFolder
    /// The ports of emulators and of services' endpoints.
    package let ports: [LocalCluster.Part: Int]
    /// The ports of the services' metrics and health.
    package let adminPorts: [LocalCluster.Part: Int]
    /// The port of the operators' console.
    package let consolePort: Int
    /// The secret of the identity provider's OAuth client.
    package var clientSecret = LocalCluster.clientSecret
    /// `FIELDPOST_SECRET_KEYS`.
    package var secretKeys = Data((0..<32).map { UInt8($0) }).base64EncodedString()
    /// The hosts of the parts, which have their names; `nil`: all run on this machine's loopback.
    package var network: HostNetwork?
    /// Environment variables that everything gets, unless the cluster has others.
    package var inherited = ["PATH": "/usr/bin:/bin"]

    package init(
        folder: ClusterFolder, ports: [LocalCluster.Part: Int], adminPorts: [LocalCluster.Part: Int],
        consolePort: Int
    ) {
        self.folder = folder
        self.ports = ports
        self.adminPorts = adminPorts
        self.consolePort = consolePort
    }

    /// A home that goes when its owner does, with free ports.
    ///
    /// - Parameter services: Those that are going to run.
    init(temporary name: String, services: [LocalCluster.Part]) throws {
        let listening = LocalCluster.Part.emulators + LocalCluster.Part.services.filter { $0.service?.endpoint != nil }
        let others = services.filter { $0.service?.endpoint != nil && !listening.contains($0) }
        folder = try ClusterFolder(name)
        ports = Dictionary(uniqueKeysWithValues: try (listening + others).map { ($0, try Ports.free()) })
        adminPorts = Dictionary(uniqueKeysWithValues: try services.map { ($0, try Ports.free()) })
        consolePort = try Ports.free()
    }

    /// The address of the operators' console.
    package var consoleURL: String { "http://127.0.0.1:\(consolePort)" }

    /// The address of an emulator or of a service's endpoint.
    package func url(_ part: LocalCluster.Part) -> String { "http://" + address(part) }

    func address(_ part: LocalCluster.Part) -> String { "\(host(part)):\(ports[part] ?? 0)" }

    /// The address that a part listens on.
    func host(_ part: LocalCluster.Part) -> String { network?.address(part.name) ?? "127.0.0.1" }

    /// The settings of every program that uses the cluster.
    package func settings(conninfo: String) -> [String: String] {
        [
            "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_KAFKA_BROKERS": address(.broker),
            LocalCluster.passwordVariable: LocalCluster.passwordOfSAP,
            LocalCluster.tokensVariable: LocalCluster.tokensOfEconomic,
            LocalCluster.clientSecretVariable: clientSecret, "FIELDPOST_SECRET_KEYS": secretKeys,
        ]
    }

    /// The value of a local setting of the catalogue.
    func text(_ value: ServiceDescription.LocalValue) -> String {
        switch value {
        case .text(let text): text
        case .folder(let path): LocalCluster.sourceFolder(path)
        case .list(let values): values.map(text).joined(separator: ",")
        case .url(let name):
            Services.all.first { $0.endpoint?.name == name }.map { url(LocalCluster.Part($0)) } ?? ""
        }
    }
}
