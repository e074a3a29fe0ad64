import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier

/// Hundreds of rows of one person, each with a value that no client expects: others are notified, and no mirror
/// counts as deleted.
@Suite(.ownThreads) struct UnreadableRowTests {
    @Test func othersAreNotifiedAndMirrorsStay() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            var defects: [StandIn.Change] = []
            for index in 0..<200 {
                defects.append(.init(user: "fieldpost", fields: ["Headline": "Bo's \(index)", "Owner": "bo"]))
                defects.append(.init(user: "fieldpost", fields: ["Headline": "Ana's \(index)", "Owner": "ana"]))
            }
            try await world.standIn.change(defects)
            try await world.complete(.comparison)
            try await world.complete()
            try #require(try world.mirrorCount() == 400)
            #expect(try world.notices().count == 400)

            try await world.standIn.post("/sandbox/switches", #"{"unreadableRowsOf": "bo"}"#)
            try await world.standIn.change(
                (0..<200).map {
                    .init(
                        record: Self.record(2 * $0 + 2), user: "fieldpost", action: "Modify",
                        fields: ["Severity": "2-Major"])
                })
            for scope in [DefectPoll.Scope.changes, .comparison] {
                let before = try await world.standIn.stats()["unreadableRows"] ?? 0
                try await world.complete(scope)
                #expect(try await world.standIn.stats()["unreadableRows"] ?? 0 >= before + 200)
                #expect(try world.mirrorCount() == 400)
                let told = try world.notices().filter { $0.hasSuffix("has been modified") }
                #expect(told.count == 200 && told.allSatisfy { $0.hasPrefix("/users/ana@example.com: ") })
            }
        }
    }

    /// A row whose id is an object is no defect at all: the comparison finds one less, and removes no mirror for it.
    @Test func rowWithoutAReadableIDKeepsTheMirrors() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            // The stand-in gives the 18th row of a page an object as its id.
            let owners = Array(repeating: "ana", count: 17) + ["bo"]
            try await world.standIn.change(
                owners.map { .init(user: "fieldpost", fields: ["Headline": "h", "Owner": $0]) })
            try await world.complete(.comparison)
            try #require(try world.mirrorCount() == 18)
            try await world.standIn.post("/sandbox/switches", #"{"unreadableRowsOf": "bo"}"#)
            try await world.complete(.comparison)
            #expect(try await world.standIn.stats()["unreadableRows"] == 1)
            #expect(try world.mirrorCount() == 18)
        }
    }

    private static func record(_ number: Int) -> String {
        "SAMPL" + String(String(100_000_000 + number).dropFirst())
    }
}
