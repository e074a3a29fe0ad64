import Foundation
import Kafka
import TestSupport
import Testing

@testable import ChangeRelay

@Suite(.ownThreads) struct BrokerMonitorTests {
    /// A missing file keeps librdkafka from creating a client, as a lack of threads or file descriptors does.
    @Test func clientThatCannotBeCreatedIsRetried() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("certificate")
            let monitor = try BrokerMonitor(
                brokers: "127.0.0.1:1", properties: ["security.protocol": "ssl", "ssl.ca.location": file.path])
            #expect(try failure(of: monitor).contains("ssl.ca.location"))
            let server = try TLSServer()
            try FileManager.default.copyItem(atPath: server.certificateFile, toPath: file.path)
            try wait("a client") { try !failure(of: monitor).contains("ssl.ca.location") }
        }
    }

    /// Returns the reason why a poll fails.
    private func failure(of monitor: BrokerMonitor) throws -> String {
        monitor.submit(BrokerMonitor.Query(confirmed: [:], unresponsive: [], session: 0))
        var result: Result<BrokerMonitor.Sample, KafkaError>?
        try wait("a result") {
            result = monitor.takeResult()
            if result == nil { poll(nil, 0, 10) }
            return result != nil
        }
        guard case .failure(let error)? = result else { return "" }
        return error.description
    }
}
