import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import DefectNotifier

/// Hundreds of unreadable rows of one person: other people are notified, and no mirror counts as deleted.
@Suite(.ownThreads) struct UnreadableRowTests {
    @Test func othersAreNotifiedAndMirrorsStay() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            var defects: [CompassWorld.Change] = []
            for index in 0..<200 {
                defects.append(.init(user: "fieldpost", fields: ["Headline": "Bo's \(index)", "Owner": "bo"]))
                defects.append(.init(user: "fieldpost", fields: ["Headline": "Ana's \(index)", "Owner": "ana"]))
            }
            try await world.compass.change(defects)
            try await world.complete(.comparison)
            try await world.complete()
            try #require(try world.mirrorCount() == 400)
            #expect(try world.notices().count == 400)

            try await world.compass.post("/sandbox/switches", #"{"unreadableRowsOf": "bo"}"#)
            try await world.compass.change(
                (0..<200).map {
                    .init(
                        record: Self.record(2 * $0 + 2), user: "fieldpost", action: "Modify",
                        fields: ["Severity": "2-Major"])
                })
            for scope in [DefectPoll.Scope.changes, .comparison] {
                let before = try await world.compass.stats()["unreadableRows"] ?? 0
                try await world.complete(scope)
                #expect(try await world.compass.stats()["unreadableRows"] ?? 0 >= before + 200)
                #expect(try world.mirrorCount() == 400)
                let notices = try world.notices().filter { $0.hasSuffix("has been modified") }
                #expect(notices.count == 200 && notices.allSatisfy { $0.hasPrefix("/users/ana@example.com: ") })
            }
        }
    }

    /// A row whose id is an object is no defect: the comparison finds one less, and removes no mirror.
    @Test func rowWithoutReadableIDKeepsMirrors() async throws {
        try await CompassWorld.run { world in
            try await world.complete()
            // The emulator makes the id of a page's 18th row an object.
            let owners = Array(repeating: "ana", count: 17) + ["bo"]
            try await world.compass.change(
                owners.map { .init(user: "fieldpost", fields: ["Headline": "h", "Owner": $0]) })
            try await world.complete(.comparison)
            try #require(try world.mirrorCount() == 18)
            try await world.compass.post("/sandbox/switches", #"{"unreadableRowsOf": "bo"}"#)
            try await world.complete(.comparison)
            #expect(try await world.compass.stats()["unreadableRows"] == 1)
            #expect(try world.mirrorCount() == 18)
        }
    }

    private static func record(_ number: Int) -> String {
        "SAMPL" + String(String(100_000_000 + number).dropFirst())
    }
}
