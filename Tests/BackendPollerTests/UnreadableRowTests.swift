import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Hundreds of pages, each with an unexpected value in a row of one person: all other changes arrive in one run, and no
/// record of that person is treated as deleted.
@Suite(.ownThreads) struct UnreadableRowTests {
    /// Small pages, each with a row of the person, and a limit that allows all of them.
    private static let smallPages =
        #"UPDATE backend.connection SET settings = '{"pageRowsMax": "4", "pagesMax": "1000"}'"#
    private static let victim = 0

    /// Terminates even if a back end is never fixed, for which earlier code waited.
    private func completeRun(_ world: inout PollerWorld, isFull: Bool) async throws {
        try world.beginRun(isFull: isFull)
        for _ in 0..<2_000 {
            let polls = try world.openPolls()
            if polls.isEmpty { return }
            for poll in polls { try await world.step(poll) }
        }
        Issue.record("the run does not end")
    }

    @Test(arguments: [false, true]) func unreadableRowDoesNotDelayChangesFromSAP(isFull: Bool) async throws {
        try await PollerWorld.runSAP { world in
            try world.acme.connection.runScript(Self.smallPages)
            var records: [String] = []
            for index in 0..<200 {
                _ = try await world.add(Self.victim, on: -(index % 3))
                for person in [1 + index % 20, 2 + index % 20] {
                    records.append(try await world.add(person, on: -(index % 3)))
                }
            }
            try await completeRun(&world, isFull: true)
            try await completeRun(&world, isFull: false)
            let ids = Set(try world.seen(of: PollerWorld.email(Self.victim)).map(\.backendId))
            try #require(ids.count == 200)

            try await world.post("/sandbox/switches", #"{"unreadableRowsOf": "0", "rowsMax": 4}"#)
            for index in stride(from: 0, to: 400, by: 8) {
                try await world.change(records[index], #""hundredths": \#(200 + index)"#)
                // The number of people whose missing records a run checks.
                if index < 80 { try await world.change(records[index + 1], #""status": 60"#) }
            }
            _ = try await world.add(21, on: -1)
            let before = try await world.stats("unreadableRows")
            try await completeRun(&world, isFull: isFull)
            #expect(try await world.stats("unreadableRows") - before >= 200)
            // The test itself reads long pages.
            try await world.post("/sandbox/switches", #"{"rowsMax": 0}"#)
            try await expectSeen(1..<22, &world)
            #expect(try ids.isSubset(of: world.seen(of: PollerWorld.email(Self.victim)).map(\.backendId)))

            try await world.post("/sandbox/switches", #"{"unreadableRowsOf": ""}"#)
            try await completeRun(&world, isFull: true)
            try await expectSeen(0..<24, &world)
        }
    }

    private func expectSeen(_ people: Range<Int>, _ world: inout PollerWorld) async throws {
        for person in people {
            let seen = try world.seen(of: PollerWorld.email(person))
                .filter { $0.status != BackendStatus.cancelled.rawValue }.compactMap { BackendEntry($0) }
            let live = try await world.live(person)
            #expect(Set(seen) == live && seen.count == live.count, "person \(person)")
        }
    }

    @Test func unreadableRowDoesNotDelayChangesFromEconomic() async throws {
        try await PollerWorld.run { world in
            let (ana, bo, victim) = (0, 1, 2)
            var before: Set<String> = []
            for _ in 0..<40 { before.insert(String(try await world.create(of: victim))) }
            for _ in 0..<2 { try await completeRun(&world, isFull: true) }
            try await completeRun(&world, isFull: false)
            try #require(Set(try world.seen(of: victim).map(\.backendId)) == before)

            try await world.post("/sandbox/switches", #"{"unreadableRowsOf": "9", "pageItemsMax": 2}"#)
            var created: [Int: Set<String>] = [:]
            for index in 0..<200 {
                _ = try await world.create(of: victim)
                let person = index % 2 == 0 ? ana : bo
                created[person, default: []].insert(String(try await world.create(of: person)))
            }
            let count = try await world.stats("unreadableRows")
            try await completeRun(&world, isFull: false)
            #expect(try await world.stats("unreadableRows") - count >= 200)
            for person in [ana, bo] { #expect(Set(try world.seen(of: person).map(\.backendId)) == created[person]) }
            try await completeRun(&world, isFull: true)
            #expect(try before.isSubset(of: world.seen(of: victim).map(\.backendId)))

            try await world.post("/sandbox/switches", #"{"unreadableRowsOf": ""}"#)
            try await completeRun(&world, isFull: true)
            #expect(try world.seen(of: victim).count == 240)
        }
    }

    /// One project's row is unreadable for all people: changes of all other choices arrive, and the project is kept.
    @Test func choicesOfEconomicChangeWhileAProjectIsUnreadable() async throws {
        try await PollerWorld.run { world in
            try await world.post(
                "/sandbox/organisation",
                #"{"employees": [], "projects": [{"number": 12, "name": "Cranes"}], "activities": []}"#)
            for _ in 0..<2 { try await completeRun(&world, isFull: true) }
            try world.beginRun(isFull: false)
            try #require(try world.names(of: .reportingTreeNode).isSuperset(of: ["Piers", "Cranes", "Diving"]))
            try await world.finishPolls()

            try await world.post("/sandbox/switches", #"{"unreadableChoice": "11"}"#)
            try await world.post(
                "/sandbox/organisation",
                """
                {"employees": [], "projects": [{"number": 12, "name": "Big cranes"}, {"number": 13, "name": "Dock"}],
                 "activities": [{"number": 2, "name": "Welding", "isAccessible": true}]}
                """)
            try world.restart()
            try await completeRun(&world, isFull: true)
            try world.beginRun(isFull: false)
            let names = try world.names(of: .reportingTreeNode)
            #expect(names.isSuperset(of: ["Piers", "Big cranes", "Dock", "Diving", "Welding"]))
            #expect(!names.contains("Cranes"))
        }
    }
}
