package import Essentials
import FoundationEssentials
import HTTPClient
package import Logging
import Metrics
import ServiceLifecycle
import ServiceSettings

/// Sends the spans of the process to an OTLP receiver over HTTP, in the background.
///
/// Nothing waits for it. A receiver that is away, or asks for patience, is tried again, and what no longer fits into
/// `SpanRecorder` meanwhile is dropped and counted; so is what the receiver refuses. Source of what may be tried again:
/// OpenTelemetry Protocol 1.5, "OTLP/HTTP Response".
package struct SpanExport: Service {
    let recorder: SpanRecorder
    let collector: Collector
    let text: SpanText
    let client: Client
    let logger: Logger
    private let exported = Counter(label: "tracing.spans.exported")
    private let full = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "full")])
    private let refused = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "refused")])
    private let away = Counter(label: "tracing.spans.dropped", dimensions: [("reason", "away")])

    /// Spans in one request: about half a megabyte.
    static let countMax = 1_024
    private static let interval = Duration.milliseconds(500)
    private static let answerMax = Duration.seconds(5)
    /// What is left when the process stops is tried to be sent for so long.
    private static let lastMax = Duration.seconds(2)

    package init(recorder: SpanRecorder, collector: Collector, text: SpanText, logger: Logger) {
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
        let end = ContinuousClock.now + Self.lastMax
        while let batch = Self.nextBatch(&left) {
            let time = end - .now
            if time > .zero {
                let answer = await send(batch, within: time)
                count(answer, of: batch.count)
                guard case .again = answer else { continue }
            }
            away.increment(by: batch.count + left.count)
            break
        }
        client.shutDown()
    }

    /// - Returns: What was not sent.
    private func sendUntilCancelled() async -> ArraySlice<TraceSpan> {
        var backoff = Backoff(first: .milliseconds(500), waitMax: .seconds(30))
        var (isAway, isRefused) = (false, false)
        while !Task.isCancelled {
            var spans = take()
            while let batch = Self.nextBatch(&spans) {
                let answer = await send(batch, within: Self.answerMax)
                count(answer, of: batch.count)
                if case .taken = answer { isRefused = false }
                if case .refused(let reason) = answer, !isRefused {
                    isRefused = true
                    logger.warning("the collector refuses spans", metadata: ["reason": "\(reason)"])
                }
                guard case .again(let reason, let asked) = answer else {
                    backoff.succeeded()
                    isAway = false
                    continue
                }
                if Task.isCancelled { return batch + spans }
                if !isAway { logger.warning("spans cannot be sent, trying again", metadata: ["reason": "\(reason)"]) }
                isAway = true
                spans = batch + spans
                let wait = max(backoff.failed(random: .random(in: 0..<1)), min(asked ?? .zero, .seconds(60)))
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

    private enum Answer {
        case taken(rejectedCount: Int)
        case refused(String)
        /// - `asked`: for how long it is to be left alone.
        case again(String, asked: Duration?)
    }

    /// The end of the process does not cut it off: what may have been taken would be sent again.
    private func send(_ spans: ArraySlice<TraceSpan>, within: Duration) async -> Answer {
        await Task { await sendNow(spans, within: within) }.value
    }

    private func sendNow(_ spans: ArraySlice<TraceSpan>, within: Duration) async -> Answer {
        let request = Request(
            "POST", collector.url,
            headers: [("Content-Type", "application/json")] + collector.headers, body: text.json(spans),
            connectMax: min(.seconds(5), within), totalMax: within, answerBytesMax: 64 * 1024)
        do {
            let response = try await client.send(request)
            switch response.status {
            case 200..<300: return .taken(rejectedCount: Self.rejectedCount(response.body))
            case 429, 502, 503, 504:
                let asked = response.headers["retry-after"].flatMap { Int($0) }.map { Duration.seconds($0) }
                return .again("answered \(response.status)", asked: asked)
            default: return .refused("answered \(response.status)")
            }
        } catch {
            return .again(error.message, asked: nil)
        }
    }

    private func count(_ answer: Answer, of count: Int) {
        switch answer {
        case .taken(let rejectedCount):
            let rejectedCount = min(max(0, rejectedCount), count)
            exported.increment(by: count - rejectedCount)
            if rejectedCount > 0 { refused.increment(by: rejectedCount) }
        case .refused: refused.increment(by: count)
        case .again: break
        }
    }

    /// What the receiver did not take, of an answer that it took the others: `partialSuccess.rejectedSpans`.
    private static func rejectedCount(_ body: [UInt8]) -> Int {
        struct Reply: Decodable {
            struct Part: Decodable {
                /// A text, as 64-bit numbers are; some receivers write a number.
                let rejectedSpans: Number?
            }
            struct Number: Decodable {
                let value: Int
                init(from decoder: any Decoder) throws {
                    let container = try decoder.singleValueContainer()
                    value = try (try? container.decode(Int.self)) ?? Int(container.decode(String.self)) ?? 0
                }
            }
            let partialSuccess: Part?
        }
        return (try? JSONDecoder().decode(Reply.self, from: Data(body)))?.partialSuccess?.rejectedSpans?.value ?? 0
    }
}
