import Foundation
import LocalCluster

/// Runs `deploy/collector.py`, which receives spans and decodes them by OpenTelemetry's published messages.
package final class SpanCollector: Sendable {
    /// A received span.
    package struct Span: Decodable, Sendable {
        /// Attributes of the resource, such as `service.name`.
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
        /// Header fields by their names in lower case.
        package let headers: [String: String]
    }

    private let receiver: ReceiverProcess
    /// The value of `tracing.endpoint`.
    package let endpoint: String

    /// - Parameter answers: The responses to the first requests, in the script's format.
    package init(answers: [String] = []) throws {
        let lines = answers.map { $0 + "\n" }.joined()
        receiver = try ReceiverProcess("collector.py", untilThereIs: "port", files: ["answers": lines])
        endpoint = "http://127.0.0.1:\(String(decoding: try receiver.data(of: "port"), as: UTF8.self))"
    }

    /// The requests that were accepted.
    package func spans() throws -> [Span] { try receiver.lines(of: "spans") }
    package func requests() throws -> [Request] { try receiver.lines(of: "requests") }
    /// The reasons for which it rejected requests as malformed.
    package func refusals() throws -> [String] { try receiver.lines(of: "refused") }
}
