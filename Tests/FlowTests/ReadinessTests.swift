import Foundation
import HTTP
import LocalCluster
import Model
import Testing

extension FlowTests {
    struct ReadinessTests {
        /// Nothing but Kafka is away: a worker lives on, and gets no traffic until Kafka is back.
        @Test(.timeLimit(.minutes(20))) func aWorkerWithoutKafkaIsLiveAndNotReady() async throws {
            var options = LocalCluster.Options.quick
            options.services = Services.needing(.kafka).map { LocalCluster.Part($0) }
            let workers = options.services.filter { $0.service?.topics.isEmpty == false }
            try await withCluster("readiness", options) { cluster in
                await cluster.kill9(.broker)
                for part in options.services {
                    // Each worker's client tells once a second, or later where much else is done.
                    let worker = workers.contains { $0.name == part.name } ? "\(part.name)/0" : ""
                    try await eventually("\(part.name) is not ready") {
                        let (status, text) = try await cluster.health("ready", of: part)
                        return status == 503 && (worker.isEmpty || text.contains(worker)) ? nil : text
                    }
                    let live = try await cluster.health("live", of: part)
                    #expect(live.status == 200, "\(live.text)")
                }
                // Not for a moment only.
                try await Task.sleep(for: .seconds(3))
                for part in workers {
                    let (status, text) = try await cluster.health("ready", of: part)
                    #expect(status == 503 && text.contains("\(part.name)/0"), "\(text)")
                }
                try cluster.start(.broker)
                for part in options.services { try await cluster.waitUntilReady(part) }
            }
        }

        /// Connections stay open and nothing is answered. The relay says so, and is ready again when the broker is.
        @Test(.timeLimit(.minutes(20))) func aRelayWhoseBrokerIsFrozenIsLiveAndNotReady() async throws {
            var options = LocalCluster.Options.quick
            options.services = [.relay]
            try await withCluster("frozen-broker", options) { cluster in
                cluster.freeze(.broker)
                try await eventually("the relay is not ready") {
                    let (status, text) = try await cluster.health("ready", of: .relay)
                    return status == 503 ? nil : text
                }
                // Not for a moment only: it releases leadership meanwhile, and is re-created.
                for _ in 0..<25 {
                    try await Task.sleep(for: .seconds(1))
                    let (status, text) = try await cluster.health("ready", of: .relay)
                    #expect(status == 503, "\(text)")
                    #expect(try await cluster.health("live", of: .relay).status == 200)
                }
                cluster.thaw(.broker)
                try await cluster.waitUntilReady(.relay)
            }
        }
    }
}

extension LocalCluster {
    /// What a service says of itself at `/health/live` or `/health/ready`.
    fileprivate func health(_ name: String, of part: Part) async throws -> (status: Int, text: String) {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(Request(adminURL(part) + "/health/" + name))
        return (response.status, String(decoding: response.body, as: UTF8.self))
    }
}
