import Catalogues
import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct KillTestTests {
    /// If a back end reports changes, people's own polls follow in full comparisons only.
    @Test func runsOfAllPeopleAreCountedBetweenFullComparisons() throws {
        let environment = try TestEnvironment()
        let id = environment.id.rawValue
        var connection = try Connection(environment.conninfo)
        func last() throws -> Int64 { try connection.run(KillTestCommand.lastRunOfEverybody)[0].decode(Int64.self) }
        func finish(_ person: String, _ run: Int64) throws {
            let poll = RealmContents.pollID(of: person)
            try connection.run(
                """
                INSERT INTO poll.finished (environment_id, poll_id, run) VALUES (\(id), \(poll), \(run))
                ON CONFLICT (environment_id, poll_id) DO UPDATE SET run = excluded.run
                """)
        }
        #expect(try last() == 0)
        try finish("ana@x.example", 1)
        try finish("bo@x.example", 2)
        #expect(try last() == 1)
        for run in 2...4 as ClosedRange<Int64> {
            try finish(Poll.changesPerson, run)
            #expect(try last() == run)
        }
    }
}
