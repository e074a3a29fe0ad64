import Foundation
import LocalCluster

/// `deploy/collector.py`: who services send their spans to. It reads them by OpenTelemetry's published messages.
package final class SpanCollector: Sendable {
    /// A span as it came.
    package struct Span: Decodable, Sendable {
        /// Of the resource, such as `service.name`.
        package let resource: [String: String]
        package let scope: String
        package let trace, span: String
        package let parent: String?
        package let name: String
        /// `SPAN_KIND_SERVER`, …
        package let kind: String
        /// `STATUS_CODE_UNSET` or `STATUS_CODE_ERROR`, with a message.
        package let status: String
        package let message: String
        /// Nanoseconds since 1970.
        package let start, end: UInt64
        package let attributes: [String: String]

        package var service: String { resource["service.name"] ?? "" }
    }

    package struct Request: Decodable, Sendable {
        package let path: String
        /// By names in lower case.
        package let headers: [String: String]
    }

    private let receiver: ReceiverProcess
    /// What `tracing.endpoint` is.
    package let endpoint: String

    /// - Parameter answers: What is answered to the first requests, as the script has it.
    package init(answers: [String] = []) throws {
        let lines = answers.map { $0 + "\n" }.joined()
        receiver = try ReceiverProcess("collector.py", untilThereIs: "port", files: ["answers": lines])
        endpoint = "http://127.0.0.1:\(String(decoding: try receiver.data(of: "port"), as: UTF8.self))"
    }

    /// What it took.
    package func spans() throws -> [Span] { try receiver.lines(of: "spans") }
    package func requests() throws -> [Request] { try receiver.lines(of: "requests") }
    /// Why it took something for no message of the protocol.
    package func refusals() throws -> [String] { try receiver.lines(of: "refused") }
}
