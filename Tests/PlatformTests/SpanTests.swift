import Essentials
import Foundation
import HTTPClient
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

@Suite(.ownThreads) struct SpanTests {
    private static let sampled = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    private static let unsampled = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")

    private static func call(_ address: String = "sap.example.com:443") -> TraceSpan.Work {
        .call(method: "POST", address: address, status: 201, failure: nil)
    }

    // MARK: Sampling

    @Test func nothingIsRecordedWithoutCollector() {
        let recorder = SpanRecorder(seed: 1)
        #expect(recorder.begin(Self.sampled) == nil && recorder.beginRequest(nil) == nil)
        #expect(recorder.beginRequest(Self.sampled) == nil)
    }

    @Test func samplingFollowsTheTraceparent() throws {
        let recorder = SpanRecorder(seed: 1)
        recorder.start(sample: 0)
        #expect(recorder.beginRequest(Self.unsampled) == nil && recorder.begin(Self.unsampled) == nil)
        #expect(recorder.begin(nil) == nil && recorder.beginRequest(nil) == nil)
        let span = try #require(recorder.beginRequest(Self.sampled))
        #expect(span.context.traceID == Self.sampled?.traceID && span.context.spanID != Self.sampled?.spanID)
        recorder.end(span, Self.call())
        let recorded = recorder.take().spans
        #expect(recorded.map(\.parentID) == [Self.sampled?.spanID])
        #expect(recorded.allSatisfy { $0.end >= $0.start && $0.start > 1_700_000_000_000_000_000 })
        #expect(recorder.take().spans.isEmpty)
    }

    @Test(arguments: [(0.0, 0...0), (0.1, 850...1_150), (1.0, 10_000...10_000)])
    func samplingRateIsObserved(sample: Double, expected: ClosedRange<Int>) {
        let recorder = SpanRecorder(seed: 7)
        recorder.start(sample: sample)
        let spans = (0..<10_000).compactMap { _ in recorder.beginRequest(nil) }
        #expect(expected.contains(spans.count))
        #expect(Set(spans.map(\.context.traceID)).count == spans.count)
        #expect(spans.allSatisfy { $0.context.isSampled })
    }

    @Test func spanIDsAreUniqueInProcess() {
        let recorder = SpanRecorder(seed: .max - 10)
        let ids = (0..<10_000).map { _ in recorder.nextID() }
        #expect(Set(ids).count == 10_000)
    }

    @Test func spansBeyondBufferAreDroppedAndCounted() throws {
        let recorder = SpanRecorder(seed: 1)
        recorder.start(sample: 1)
        let span = try #require(recorder.begin(Self.sampled))
        for _ in 0..<SpanRecorder.bufferedCountMax + 3 { recorder.end(span, Self.call()) }
        let taken = recorder.take()
        #expect(taken.spans.count == SpanRecorder.bufferedCountMax && taken.droppedCount == 3)
        #expect(recorder.take().droppedCount == 0)
    }

    // MARK: Export

    @Test func collectorReceivesEveryOperation() async throws {
        let collector = try SpanCollector()
        let id = UUID()
        let works: [TraceSpan.Work] = [
            .request(method: "POST", route: "/v1/mutations", status: 503),
            .request(method: "GET", route: nil, status: 404),
            .commit(environment: 7, count: 12),
            .publish(topic: "entry.events", environment: 7, .init(kind: "TimeEntry", id: id, position: 1 << 60)),
            .decide(
                group: "entry-submitter", environment: 7, .init(kind: "TimeEntry", id: id), origin: "event",
                outcome: "dead-lettered"),
            .call(
                method: "PO\"ST\u{0}\u{2028}", address: String(repeating: "ä", count: 400), status: nil,
                failure: "timeout"),
        ]
        try await sending(to: collector) { recorder in
            for work in works {
                if let span = recorder.begin(Self.sampled) { recorder.end(span, work) }
            }
            let haveCome = try await eventually {
                try collector.spans().count == works.count || !collector.refusals().isEmpty
            }
            let refusals = try collector.refusals()
            #expect(haveCome && refusals.isEmpty, "\(refusals)")
        }
        let spans = try collector.spans()
        #expect(
            spans.map(\.kind)
                == ["SERVER", "SERVER", "INTERNAL", "PRODUCER", "CONSUMER", "CLIENT"].map { "SPAN_KIND_\($0)" })
        #expect(
            spans.prefix(5).map(\.name) == [
                "POST /v1/mutations", "GET", "commit", "send entry.events", "process TimeEntry",
            ])
        #expect(
            spans.map { $0.status == "STATUS_CODE_ERROR" ? $0.message : nil } == [
                "status 503", nil, nil, nil, "the key is dead-lettered", "timeout",
            ])
        #expect(spans.allSatisfy { $0.trace == Self.sampled?.traceID && $0.parent == "b7ad6b7169203331" })
        #expect(spans.allSatisfy { $0.service == "a-service" && $0.resource["service.instance.id"] == "host:1" })
        #expect(spans[3].attributes["fieldpost.position"] == "\(1 << 60)")
        #expect(spans[4].attributes["fieldpost.object"] == id.text)
        #expect(spans[5].attributes["server.address"]?.utf8.count == 256)
        #expect(spans[5].name == "PO\"ST\u{0}\u{2028}")
        let request = try #require(try collector.requests().first)
        #expect(request.path == "/v1/traces" && request.headers["x-key"] == "secret")
    }

    @Test func unavailableCollectorIsRetriedAndRejectionIsNot() async throws {
        let collector = try SpanCollector(answers: ["503 Retry-After: 0", "429", "400"])
        try await sending(to: collector) { recorder in
            let (first, second) = (recorder.begin(Self.sampled), recorder.begin(Self.sampled))
            if let first { recorder.end(first, Self.call()) }
            let isRefused = try await eventually { try collector.requests().count >= 3 }
            #expect(isRefused)
            if let second { recorder.end(second, Self.call()) }
            let isTaken = try await eventually { try !collector.spans().isEmpty }
            #expect(isTaken)
            let spans = try collector.spans()
            #expect(spans.map(\.span) == [second.map { digits($0.context.spanID) }])
        }
        #expect(try collector.requests().count == 4)
    }

    @Test func remainingSpansAreExportedAtShutdown() async throws {
        let collector = try SpanCollector()
        let count = SpanExport.countMax + 1
        try await sending(to: collector) { recorder in
            guard let span = recorder.begin(Self.sampled) else { return }
            for _ in 0..<count { recorder.end(span, Self.call()) }
        }
        #expect(try collector.spans().count == count)
    }

    @Test func rejectionAtShutdownDoesNotBlockRemainingSpans() async throws {
        let collector = try SpanCollector(answers: ["400"])
        let (recorder, export) = try makeExport(to: collector.endpoint)
        let span = try #require(recorder.begin(Self.sampled))
        for _ in 0..<SpanExport.countMax + 1 { recorder.end(span, Self.call()) }
        // It is stopping already: all spans are exported by the shutdown.
        try await Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            try await export.run()
        }.value
        #expect(try collector.spans().count == 1)
    }

    @Test(.timeLimit(.minutes(10))) func unreachableCollectorDoesNotDelayShutdown() async throws {
        var recorder: SpanRecorder?
        try await sending(to: "http://127.0.0.1:1") {
            recorder = $0
            if let span = $0.begin(Self.sampled) { $0.end(span, Self.call()) }
        }
        #expect(recorder?.take().spans.isEmpty == true, "the export takes the span, and ends without its delivery")
    }

    /// Runs the export as `serve` does, until `body` has ended, then shuts it down gracefully.
    private func sending(to collector: SpanCollector, _ body: (SpanRecorder) async throws -> Void) async throws {
        try await sending(to: collector.endpoint, body)
    }

    private func makeExport(to endpoint: String) throws -> (SpanRecorder, SpanExport) {
        let recorder = SpanRecorder(seed: .random(in: 0...UInt64.max))
        let collector = try #require(
            try Collector(
                Configuration(
                    [.tracingEndpoint, .tracingSample, .tracingHeaders],
                    environment: [
                        "FIELDPOST_TRACING_ENDPOINT": endpoint + "/", "FIELDPOST_TRACING_SAMPLE": "0",
                        "FIELDPOST_TRACING_HEADERS": "x-key=secret",
                    ])))
        let export = SpanExport(
            recorder: recorder, collector: collector, text: SpanText(service: "a-service", instance: "host:1"),
            logger: Logger(label: "test"), lastMax: .seconds(60))
        return (recorder, export)
    }

    private func sending(to endpoint: String, _ body: (SpanRecorder) async throws -> Void) async throws {
        let (recorder, export) = try makeExport(to: endpoint)
        let group = ServiceGroup(services: [export], logger: Logger(label: "test"))
        async let running: Void = group.run()
        let outcome: Result<Void, any Error>
        do {
            try await body(recorder)
            outcome = .success(())
        } catch { outcome = .failure(error) }
        await group.triggerGracefulShutdown()
        try await running
        try outcome.get()
    }

    // MARK: Settings

    @Test(arguments: [
        ("FIELDPOST_TRACING_ENDPOINT", "collector:4318"), ("FIELDPOST_TRACING_ENDPOINT", "http://a b"),
        ("FIELDPOST_TRACING_ENDPOINT", "http://collector/?x=1"), ("FIELDPOST_TRACING_SAMPLE", "1.5"),
        ("FIELDPOST_TRACING_SAMPLE", "10%"), ("FIELDPOST_TRACING_SAMPLE", "nan"),
        ("FIELDPOST_TRACING_HEADERS", "hush"), ("FIELDPOST_TRACING_HEADERS", "=hush"),
        ("FIELDPOST_TRACING_HEADERS", "a:b=hush"),
    ])
    func invalidTracingSettingIsNamed(variable: String, value: String) throws {
        let environment = ["FIELDPOST_TRACING_ENDPOINT": "http://collector:4318"].merging([variable: value]) { $1 }
        let configuration = try Configuration(
            [.tracingEndpoint, .tracingSample, .tracingHeaders], environment: environment)
        let error = #expect(throws: ConfigurationError.self) { try Collector(configuration) }
        #expect(error?.description.contains(variable) == true)
        #expect(error?.description.contains("hush") == false)
    }
}
