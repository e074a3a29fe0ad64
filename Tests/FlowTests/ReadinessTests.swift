import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

extension FlowTests {
    struct ReadinessTests {
        /// Only Kafka is unavailable: a worker stays live, and is not ready until Kafka recovers.
        @Test(.timeLimit(.minutes(20))) func aWorkerWithoutKafkaIsLiveAndNotReady() async throws {
            var options = LocalCluster.Options.quick
            options.services = Services.needing(.kafka).map { LocalCluster.Part($0) }
            let workers = options.services.filter { $0.service?.topics.isEmpty == false }
            try await withCluster("readiness", options) { cluster in
                await cluster.kill9(.broker)
                for part in options.services {
                    // Each worker's client reports once per second, or later under load.
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

        /// Connections stay open without responses. The relay reports it, and is ready again after the broker recovers.
        @Test(.timeLimit(.minutes(20))) func aRelayWhoseBrokerIsFrozenIsLiveAndNotReady() async throws {
            var options = LocalCluster.Options.quick
            options.services = [.relay]
            try await withCluster("frozen-broker", options) { cluster in
                cluster.freeze(.broker)
                try await eventually("the relay is not ready") {
                    let (status, text) = try await cluster.health("ready", of: .relay)
                    return status == 503 ? nil : text
                }
                try await eventually("it releases leadership") {
                    try await cluster.relayLockCount() == 0 ? nil : "it holds the lock"
                }
                // Not for a moment only: it is re-created, and does not become the leader again.
                for _ in 0..<25 {
                    try await Task.sleep(for: .seconds(1))
                    #expect(try await cluster.relayLockCount() == 0)
                    let (status, text) = try await cluster.health("ready", of: .relay)
                    #expect(status == 503, "\(text)")
                    #expect(try await cluster.health("live", of: .relay).status == 200)
                }
                cluster.thaw(.broker)
                try await cluster.waitUntilReady(.relay)
            }
        }

        /// Only an operator can change a wrong password: the relay logs it once, however often it is refused.
        @Test(.timeLimit(.minutes(20))) func relayWithAWrongPasswordLogsItOnce() async throws {
            let broker = try RefusingBroker()
            var options = LocalCluster.Options.quick
            (options.services, options.idle) = ([], [.relay])
            options.variables[.relay] = [
                "FIELDPOST_KAFKA_BROKERS": broker.address, "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
                "FIELDPOST_KAFKA_SASL_MECHANISM": "PLAIN", "FIELDPOST_KAFKA_SASL_USERNAME": "fieldpost",
                "FIELDPOST_KAFKA_SASL_PASSWORD": "wrong", "FIELDPOST_KAFKA_RECONNECT_BACKOFF_MAX_MS": "100",
            ]
            try await withCluster("wrong-password", options) { cluster in
                try cluster.start(.relay)
                // The relay's clients connect ten times a second: these are several of its polls.
                try await eventually("the password is refused 400 times") {
                    broker.refusedCount > 400 ? nil : "\(broker.refusedCount) times"
                }
                let (status, text) = try await cluster.health("ready", of: .relay)
                #expect(status == 503 && text.contains("kafka.sasl.password"), "\(text)")
                let log = try #require(cluster.process(.relay)).logTail(bytesMax: 1_000_000)
                let lines = log.split(separator: "\n").filter { $0.contains("kafka.sasl.password") }
                #expect(lines.count == 1, "\(log)")
            }
        }
    }
}

extension LocalCluster {
    /// Number of sessions that hold the lock of the leading relay (`RelayStore.lockKey`).
    fileprivate func relayLockCount() async throws -> Int64 {
        let conninfo = conninfo
        return try await onOwnThread {
            var connection = try Connection(conninfo)
            return try connection.run(
                """
                SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
                    AND (classid::bigint << 32 | objid::bigint) = \(0x6669_656c_6472_6c79 as Int64)
                """
            )[0].decode(Int64.self)
        }
    }

    /// The response of `/health/live` or `/health/ready`.
    fileprivate func health(_ name: String, of part: Part) async throws -> (status: Int, text: String) {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(Request(adminURL(part) + "/health/" + name))
        return (response.status, String(decoding: response.body, as: UTF8.self))
    }
}
