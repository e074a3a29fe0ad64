package import Essentials
import FoundationEssentials
import HTTPClient
package import Logging
import Metrics
import ServiceLifecycle
import ServiceSettings

/// Exports the spans of the process to an OTLP receiver over HTTP, in the background.
///
/// Nothing waits for the export. If the receiver is unavailable or responds with backpressure, requests are retried;
/// spans that no longer fit into `SpanRecorder` meanwhile are dropped and counted, as are spans that the receiver
/// rejects. Source of the retriable statuses: OpenTelemetry Protocol 1.5, "OTLP/HTTP Response".
package struct SpanExport: Service {
    let recorder: SpanRecorder
    let collector: Collector
    let text: SpanText
    let client: Client
    let logger: Logger
    private let exported = Counter(label: "tracing.spans.exported")
    private let full = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "full")])
    private let rejected = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "rejected")])
    private let unavailable = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "unavailable")])

    /// Maximum number of spans in one request, about 0.5 MB.
    static let countMax = 1_024
    private static let interval = Duration.milliseconds(500)
    private static let responseMax = Duration.seconds(5)
    private let lastMax: Duration

    /// - Parameter lastMax: Maximum time for exporting the remaining spans at shutdown.
    package init(
        recorder: SpanRecorder, collector: Collector, text: SpanText, logger: Logger, lastMax: Duration = .seconds(2)
    ) {
        self.lastMax = lastMax
        self.recorder = recorder
        self.collector = collector
        self.text = text
        self.logger = logger
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = 1
        client = Client(configuration: configuration)
        recorder.start(sample: collector.sample)
    }

    package func run() async throws {
        var left = await cancelWhenGracefulShutdown { await sendUntilCancelled() }
        left += take()
        let end = ContinuousClock.now + lastMax
        while let batch = Self.nextBatch(&left) {
            let time = end - .now
            if time > .zero {
                let result = await send(batch, within: time)
                count(result, of: batch.count)
                guard case .retry = result else { continue }
            }
            unavailable.increment(by: batch.count + left.count)
            break
        }
        client.shutDown()
    }

    /// - Returns: The spans that were not exported.
    private func sendUntilCancelled() async -> ArraySlice<TraceSpan> {
        var backoff = Backoff(first: .milliseconds(500), waitMax: .seconds(30))
        var (isUnavailable, isRejecting) = (false, false)
        while !Task.isCancelled {
            var spans = take()
            while let batch = Self.nextBatch(&spans) {
                let result = await send(batch, within: Self.responseMax)
                count(result, of: batch.count)
                if case .accepted = result { isRejecting = false }
                if case .rejected(let reason) = result, !isRejecting {
                    isRejecting = true
                    logger.warning("collector rejects spans", metadata: ["reason": "\(reason)"])
                }
                guard case .retry(let reason, let retryAfter) = result else {
                    backoff.succeeded()
                    isUnavailable = false
                    continue
                }
                if Task.isCancelled { return batch + spans }
                if !isUnavailable {
                    logger.warning("collector unavailable, will retry", metadata: ["reason": "\(reason)"])
                }
                isUnavailable = true
                spans = batch + spans
                let wait = max(backoff.failed(random: .random(in: 0..<1)), min(retryAfter ?? .zero, .seconds(60)))
                guard (try? await Task.sleep(for: wait)) != nil else { return spans }
            }
            guard (try? await Task.sleep(for: Self.interval)) != nil else { break }
        }
        return []
    }

    private func take() -> ArraySlice<TraceSpan> {
        let taken = recorder.take()
        if taken.droppedCount > 0 { full.increment(by: taken.droppedCount) }
        return taken.spans[...]
    }

    private static func nextBatch(_ spans: inout ArraySlice<TraceSpan>) -> ArraySlice<TraceSpan>? {
        if spans.isEmpty { return nil }
        defer { spans = spans.dropFirst(countMax) }
        return spans.prefix(countMax)
    }

    private enum ExportResult {
        case accepted(rejectedCount: Int)
        case rejected(String)
        /// - `retryAfter`: the requested wait.
        case retry(String, retryAfter: Duration?)
    }

    /// Completes the request even if the task is cancelled at shutdown: accepted spans would otherwise be sent again.
    private func send(_ spans: ArraySlice<TraceSpan>, within: Duration) async -> ExportResult {
        await Task { await sendNow(spans, within: within) }.value
    }

    private func sendNow(_ spans: ArraySlice<TraceSpan>, within: Duration) async -> ExportResult {
        let request = Request(
            "POST", collector.url,
            headers: [("Content-Type", "application/json")] + collector.headers, body: text.json(spans),
            connectMax: min(.seconds(5), within), totalMax: within, responseBytesMax: 64 * 1024)
        do {
            let response = try await client.send(request)
            switch response.status {
            case 200..<300: return .accepted(rejectedCount: Self.rejectedCount(response.body))
            case 429, 502, 503, 504:
                let retryAfter = response.headers["retry-after"].flatMap { Int($0) }.map { Duration.seconds($0) }
                return .retry("status \(response.status)", retryAfter: retryAfter)
            default: return .rejected("status \(response.status)")
            }
        } catch {
            return .retry(error.message, retryAfter: nil)
        }
    }

    private func count(_ result: ExportResult, of count: Int) {
        switch result {
        case .accepted(let rejectedCount):
            let rejectedCount = min(max(0, rejectedCount), count)
            exported.increment(by: count - rejectedCount)
            if rejectedCount > 0 { rejected.increment(by: rejectedCount) }
        case .rejected: rejected.increment(by: count)
        case .retry: break
        }
    }

    /// Returns the number of rejected spans in an otherwise successful response: `partialSuccess.rejectedSpans`.
    private static func rejectedCount(_ body: [UInt8]) -> Int {
        struct Reply: Decodable {
            struct PartialSuccess: Decodable {
                /// A 64-bit number is encoded as a text; some receivers write a number.
                let rejectedSpans: Number?
            }
            struct Number: Decodable {
                let value: Int
                init(from decoder: any Decoder) throws {
                    let container = try decoder.singleValueContainer()
                    value = try (try? container.decode(Int.self)) ?? Int(container.decode(String.self)) ?? 0
                }
            }
            let partialSuccess: PartialSuccess?
        }
        return (try? JSONDecoder().decode(Reply.self, from: Data(body)))?.partialSuccess?.rejectedSpans?.value ?? 0
    }
}
