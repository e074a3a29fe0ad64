import LocalCluster
import Model

/// The table of services in `docs/contributors/architecture.md`, of `Services`.
enum ServiceReference {
    static func table() -> String {
        Documents.table(
            ["service", "reads", "does", "offers"],
            Services.all.map { service in
                let reads = service.topics.map { "`\($0.name)`" } + service.sources
                let endpoint = service.endpoint.map { "\($0.title) (`\($0.variable)`)" } ?? ""
                return ["`\(service.name)`", reads.joined(separator: ", "), service.summary, endpoint]
            })
    }
}
