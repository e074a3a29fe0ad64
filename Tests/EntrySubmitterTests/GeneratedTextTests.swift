import BackendProtocol
import Backends
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import RealmGateway

/// Any text of a person results in one record, or in one refusal with a reason.
@Suite(.ownThreads) struct GeneratedTextTests {
    private static let count = 3_000

    /// From the JSON of a device through the gateway's rules, the entry's rules and the adapter into a back end with
    /// exactly the required space, and back.
    @Test(arguments: BackendWorld.Vendor.allCases, Seeds.random(1, for: "generated texts"))
    func everyTextIsRecordedOnceOrRefused(vendor: BackendWorld.Vendor, seed: UInt64) async throws {
        try await BackendWorld.run(vendor) { world in
            try await world.switches(#"{"textLengthMax": 65}"#)
            var random = SplitMix64(seed: seed)
            var texts: [String: String] = [:]
            var (edgeCount, ruleCount) = (0, 0)
            for _ in 0..<Self.count {
                guard let text = Self.accepted(GeneratedTexts.json(&random)) else {
                    edgeCount += 1
                    continue
                }
                if let problem = world.backend.capabilities.textLimit.problem(with: text) {
                    #expect(problem.hasPrefix("Text has "))
                    ruleCount += 1
                    continue
                }
                texts[EntryMarker.marker(of: random.id())] = text
            }
            print("\(texts.count) records, \(edgeCount) refused by the gateway, \(ruleCount) too long")
            #expect(edgeCount > 0 && ruleCount > 0 && texts.count > Self.count / 2)

            let references = vendor == .sap ? ["Accounting code": "P1.1"] : ["Project": "11", "Activity": "1"]
            let (backend, person) = (world.backend, world.person)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, (marker, text)) in texts.enumerated() {
                    if index >= 8 { try await group.next() }
                    group.addTask {
                        _ = try await backend.create(
                            Submission(
                                marker: marker, person: person, day: BackendWorld.day.adding(days: index % 10),
                                durationSeconds: 3_600, text: text, references: references))
                    }
                }
                try await group.waitForAll()
            }
            let through = BackendWorld.day.adding(days: 9)
            let records = try await backend.entries(of: person, from: BackendWorld.day, through: through)
            #expect(records.count == texts.count)
            for record in records {
                let marker = try #require(record.marker)
                let matches = texts.removeValue(forKey: marker)
                let text = try #require(matches, "two records, or one that was not sent")
                #expect(
                    (record.text ?? "").unicodeScalars.elementsEqual(text.unicodeScalars),
                    "\(String(reflecting: record.text)) of \(String(reflecting: text))")
            }
        }
    }

    /// Through the gateway's rules, PostgreSQL and the submitter into a back end that alters texts.
    @Test(arguments: BackendWorld.Vendor.allCases, Seeds.random(1, for: "altered texts"))
    func everyAlteredTextIsWrittenOnce(vendor: BackendWorld.Vendor, seed: UInt64) async throws {
        try await BackendWorld.run(vendor) { world in
            try await world.switches(
                #"{"textLengthMax": 65, "convertsLineEnds": true, "trimsTexts": true, "replacesAstral": true}"#)
            var random = SplitMix64(seed: seed)
            var releasedCount = 0
            for _ in 0..<40 {
                guard let text = Self.accepted(GeneratedTexts.json(&random)) else { continue }
                let id = random.id()
                var draft = world.draft()
                draft.text = text
                try world.put(id, draft)
                try await world.work(id)
                let entry = try #require(try world.entry(id))
                let marker = EntryMarker.marker(of: id)
                let matches = try await world.backend.lookUp(marker: marker, of: world.person, on: BackendWorld.day)
                if entry.status == .invalid {
                    #expect(try world.lines(id).last?.message?.isEmpty == false && matches.isEmpty)
                } else {
                    releasedCount += 1
                    #expect(
                        entry.status == .released && matches.count == 1 && matches[0].text ?? "" == entry.text ?? "")
                }
            }
            let stats = try await world.emulator.stats()
            #expect(stats["creates"] ?? 0 == releasedCount && stats["updates"] ?? 0 == 0)
        }
    }

    /// Returns the text that the gateway accepts from a device; `nil` if it rejects it.
    private static func accepted(_ json: String) -> String? {
        let mutation = Mutation(
            operation: .put, kind: .timeEntry, id: UUID(), fields: Array("{\"text\":\(json)}".utf8))
        guard case .insert(let fields)? = try? MutationRules.decide(mutation, current: nil) else { return nil }
        return try? JSONDecoder().decode(TimeEntry.self, from: Data(fields)).text ?? ""
    }
}
