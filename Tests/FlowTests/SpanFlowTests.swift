import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// A collector receives the spans of all steps, without personal data.
    @Test(.timeLimit(.minutes(20))) func collectorReceivesSpansOfAllSteps() async throws {
        let collector = try SpanCollector()
        var options = LocalCluster.Options.quick
        for part in options.services {
            options.variables[part, default: [:]].merge([
                "FIELDPOST_TRACING_ENDPOINT": collector.endpoint, "FIELDPOST_TRACING_SAMPLE": "1",
            ]) { $1 }
        }
        try await withCluster("spans", options) { cluster in
            let demo = try cluster.startDemo(["--people", "2"])
            try await demo.expectNoDifferences()
            try await eventually("each span's parent is there, and an entry's way is whole") {
                let spans = try collector.spans()
                let byID = Dictionary(spans.map { ($0.span, $0) }) { first, _ in first }
                #expect(byID.count == spans.count)
                if let span = spans.first(where: { $0.parent.map { byID[$0] == nil } ?? false }) {
                    return "the parent of \(span.service) \(span.name) is missing, of \(spans.count) spans"
                }
                let ways = spans.map { Self.way(to: $0, byID) }
                return Self.expectedWays.allSatisfy(ways.contains) ? nil : "\(Set(ways))"
            }
            let spans = try collector.spans()
            let byID = Dictionary(spans.map { ($0.span, $0) }) { first, _ in first }
            for span in spans {
                guard let parent = span.parent.flatMap({ byID[$0] }) else { continue }
                #expect(span.trace == parent.trace && span.start >= parent.start, "\(span)")
            }
            #expect(try collector.refusals().isEmpty)
            let client = Client()
            defer { client.shutDown() }
            let exportedTexts = spans.flatMap { [$0.name, $0.message] + $0.attributes.values }
            #expect(!exportedTexts.contains { $0.contains("@") || $0.contains("Bearer") || $0.contains("/user") })
            for part in options.services where spans.contains(where: { $0.service == part.name }) {
                let response = try await client.send(Request(cluster.adminURL(part) + "/metrics"))
                let metrics = String(decoding: response.body, as: UTF8.self)
                #expect(metrics.contains("tracing_spans_exported_total"))
                let dropped = metrics.split(separator: "\n").filter { $0.hasPrefix("tracing_spans_dropped_total{") }
                #expect(dropped.allSatisfy { $0.hasSuffix(" 0") } && !dropped.isEmpty, "\(part.name): \(dropped)")
            }
        }
    }

    /// From the beginning of a trace: what an entry, its response, and a task go through.
    private static let expectedWays = [
        "realm-gateway POST /v1/mutations > realm-gateway commit",
        """
        realm-gateway POST /v1/mutations > change-relay send entry.events > entry-submitter process TimeEntry > \
        entry-submitter POST
        """,
        """
        realm-gateway POST /v1/mutations > change-relay send entry.events > entry-submitter process TimeEntry > \
        change-relay send entry.events
        """,
        """
        realm-gateway POST /v1/mutations > change-relay send task.events > task-fan-out process FieldTask > \
        change-relay send task.events > task-fan-out process FieldTask
        """,
    ]

    private static func way(to span: SpanCollector.Span, _ byID: [String: SpanCollector.Span]) -> String {
        let step = "\(span.service) \(span.name)"
        guard let parent = span.parent.flatMap({ byID[$0] }) else { return step }
        return way(to: parent, byID) + " > " + step
    }
}
