import Foundation
import Kafka
import TestSupport
import Testing

@testable import ChangeRelay

@Suite(.ownThreads) struct BrokerWatchTests {
    /// A missing file keeps librdkafka from creating a client, as a lack of threads or file descriptors does.
    @Test func clientThatCannotBeCreatedIsRetried() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("certificate")
            let watch = try BrokerWatch(
                brokers: "127.0.0.1:1", properties: ["security.protocol": "ssl", "ssl.ca.location": file.path])
            #expect(try failure(of: watch).contains("ssl.ca.location"))
            let server = try TLSServer()
            try FileManager.default.copyItem(atPath: server.certificateFile, toPath: file.path)
            try wait("a client") { try !failure(of: watch).contains("ssl.ca.location") }
        }
    }

    /// Why a poll fails.
    private func failure(of watch: BrokerWatch) throws -> String {
        watch.ask(BrokerWatch.Question(confirmed: [:], silenced: [], session: 0))
        var answer: Result<BrokerWatch.Look, KafkaError>?
        try wait("an answer") {
            answer = watch.takeAnswer()
            if answer == nil { poll(nil, 0, 10) }
            return answer != nil
        }
        guard case .failure(let error)? = answer else { return "" }
        return error.description
    }
}
