import BackendProtocol
import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import Testing

extension FlowTests {
    /// `fieldpost trace` reports the real history.
    struct TraceFlowTests {
        /// The fields of a trace that are compared.
        private struct ReportedTrace: Decodable {
            struct Hop: Decodable {
                let service: String
                let event: String
                let text: String
                let position: Int64?
                let offset: Int64?
                let attempt: Int?
            }

            let subject: String
            let hops: [Hop]
            let gaps: [String]
        }

        /// One entry: its creation is in flight when the submitter is killed, its first edit is executed without a
        /// response, and its second edit is rejected.
        @Test(.timeLimit(.minutes(20))) func traceShowsKillUnknownOutcomeAndRejection() async throws {
            var options = LocalCluster.Options.withoutGateway
            // Longer than it takes to see the record and to kill who waits for the answer.
            options.variables[.submitter, default: [:]]["FIELDPOST_BACKEND_CALL_MAX"] = "5s"
            try await withCluster("trace", options) { cluster in
                let flow = try await DirectFlow(cluster, people: 1, entries: 1, seed: 1)
                let (id, email) = (UUID(), flow.plans[0].person.email)
                var entry = flow.plans[0].first
                var edits: [Int64] = []

                try await Self.switches(#"{"rateSlowAfterWrite": 1, "slowMs": 60000}"#, cluster)
                try Self.put(id, email, entry, cluster)
                edits.append(try Self.editPosition(of: id, cluster))
                try await eventually("the record is made") {
                    let marker = EntryMarker.marker(of: id)
                    return try await cluster.recorded().contains { $0.note.hasSuffix(marker) } ? nil : "not yet"
                }
                await cluster.kill9(.submitter)
                try await Self.switches(#"{"rateSlowAfterWrite": 0}"#, cluster)
                try cluster.start(.submitter)
                try await Self.waitUntilSettled(id, at: edits[0], cluster)

                try await Self.switches(#"{"nextLostAfterWrite": 1}"#, cluster)
                entry.text = "another text"
                try Self.edit(id, email, entry, cluster)
                edits.append(try Self.editPosition(of: id, cluster))
                try await Self.waitUntilSettled(id, at: edits[1], cluster)

                try await Self.switches(#"{"lockedThrough": "2099-12-31"}"#, cluster)
                entry.text = "a third text"
                try Self.edit(id, email, entry, cluster)
                edits.append(try Self.editPosition(of: id, cluster))
                try await Self.waitUntilSettled(id, at: edits[2], cluster)

                try await eventually("the group has finished its messages") {
                    let story = try await Self.story(of: id, cluster)
                    return story.hops.contains { $0.event == "finished" } ? nil : "\(story.hops.last?.text ?? "")"
                }
                try Self.compare(try await Self.story(of: id, cluster), edits: edits)
                print(try await cluster.runCommand(["trace", id.text]))
            }
        }

        private static func compare(_ story: ReportedTrace, edits: [Int64]) throws {
            let attempts = story.hops.filter { $0.attempt != nil }
            #expect(
                attempts.map { "\($0.attempt ?? 0) \($0.event)" } == [
                    "1 called", "1 unanswered", "1 lookedUp", "1 found",
                    "2 called", "2 unknown", "2 lookedUp", "2 found",
                    "3 called", "3 refused",
                ])
            let calls = attempts.filter { $0.event == "called" }
            for (call, edit) in zip(calls, edits) { #expect(call.text.contains("for the edit at \(edit),")) }
            #expect(calls.first?.text.hasPrefix("create ") == true && calls.last?.text.hasPrefix("update ") == true)
            #expect(attempts.last?.text.contains("locked") == true)

            let written = Set(story.hops.filter { $0.event == "written" }.compactMap(\.position))
            #expect(written.isSuperset(of: edits))
            let known = written.union(attempts.compactMap(\.position))
            let published = story.hops.filter { $0.event == "published" }
            #expect(!published.isEmpty && published.allSatisfy { $0.position.map(known.contains) ?? false })
            let offsets = published.compactMap(\.offset)
            #expect(offsets == offsets.sorted())
            let statuses = story.hops.filter { $0.event == "status" }
            #expect(statuses.last?.text.hasPrefix("released: ") == true)
            #expect(statuses.last?.text.contains("locked") == true)
            // The captured events, and their display.
            let refusal = try #require(story.hops.lastIndex { $0.event == "refused" })
            #expect(try refusal < #require(story.hops.lastIndex { $0.event == "status" }))
            #expect(!story.gaps.isEmpty)
        }

        private static func story(of id: UUID, _ cluster: LocalCluster) async throws -> ReportedTrace {
            let text = try await cluster.runCommand(["trace", id.text, "--json"])
            let stories = try JSONDecoder().decode([ReportedTrace].self, from: Data(text.utf8))
            try #require(stories.count == 1)
            return stories[0]
        }

        private static func switches(_ json: String, _ cluster: LocalCluster) async throws {
            try await cluster.post("/sandbox/switches", Data(json.utf8))
        }

        private static func put(_ id: UUID, _ email: String, _ entry: TimeEntry, _ cluster: LocalCluster) throws {
            var writer = try RealmWriter(cluster.conninfo)
            try writer.put(id, of: email, entry)
        }

        private static func edit(_ id: UUID, _ email: String, _ entry: TimeEntry, _ cluster: LocalCluster) throws {
            var writer = try RealmWriter(cluster.conninfo)
            try writer.edit(id, of: email, entry)
        }

        private static func editPosition(of id: UUID, _ cluster: LocalCluster) throws -> Int64 {
            var connection = try Connection(cluster.conninfo)
            return try connection.run("SELECT edit_position FROM realm.object WHERE kind = 'TimeEntry' AND id = \(id)")[
                0
            ]
            .value(0)
        }

        private static func waitUntilSettled(_ id: UUID, at position: Int64, _ cluster: LocalCluster) async throws {
            try await eventually("the edit at \(position) is settled") {
                var connection = try Connection(cluster.conninfo)
                let rows = try connection.run(
                    "SELECT phase, edit_position FROM submission.ledger WHERE entry_id = \(id)"
                ).decode(String.self, Int64.self)
                guard let (phase, edit) = rows.first else { return "there is no ledger" }
                return phase == "settled" && edit >= position ? nil : "\(phase) at \(edit)"
            }
        }
    }
}
