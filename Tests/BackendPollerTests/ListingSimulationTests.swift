import Backends
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import BackendPoller

/// Random activity of people in SAP while it is polled.
@Suite(.ownThreads) struct ListingSimulationTests {
    /// Records are created, changed, moved and deleted, some are unreadable temporarily; pages fail; workers crash at
    /// every step, and new processes start with empty caches.
    @Test(arguments: Seeds.random(3, for: "the poller of a company"))
    func bulkListingMissesNoChangeAndDeletesNoLiveRecord(seed: UInt64) async throws {
        try await PollerWorld.runSAP { world in
            var random = SplitMix64(seed: seed)
            var live: [String: Int] = [:]
            var deletedCount = 0
            for person in 0..<24 { live[try await world.add(person, on: -person * 8)] = person }
            try await world.completeRun(isFull: true)
            for _ in 0..<150 {
                let record = live.keys.sorted().randomElement(using: &random) ?? ""
                switch Int.random(in: 0..<20, using: &random) {
                case 0, 1:
                    let person = Int.random(in: 0..<24, using: &random)
                    live[try await world.add(person, on: Int.random(in: -200...31, using: &random))] = person
                case 2, 3:
                    let day = PollerWorld.today.adding(days: Int.random(in: -199...30, using: &random))
                    try await world.change(record, #""date": "\#(day)""#)
                case 4, 5:
                    let hundredths = Int.random(in: 1...900, using: &random)
                    try await world.change(record, #""hundredths": \#(hundredths), "hoursText": """#)
                case 6: try await world.change(record, #""hoursText": "x""#)
                case 7 where live.count > 12:
                    live[record] = nil
                    deletedCount += 1
                    try await world.change(record, #""status": 60, "hoursText": """#)
                case 8: try await world.post("/sandbox/switches", #"{"next503": 1}"#)
                case 9: try world.beginRun(isFull: false)
                case 10: try world.crash()
                case 11: try world.restart()
                default:
                    guard let poll = try world.openPolls().randomElement(using: &random) else {
                        try world.beginRun(isFull: false)
                        continue
                    }
                    try await world.step(poll, isLost: Int.random(in: 0..<10, using: &random) == 0)
                }
            }
            for record in live.keys { try await world.change(record, #""hoursText": """#) }
            try await world.post("/sandbox/switches", #"{"next503": 0}"#)
            for _ in 0..<2 { try await world.completeRun(isFull: false) }
            try await world.expectAllObserved("seed \(seed)")
            let goneCount = world.written.values.reduce(0) { $0 + $1.count { $0 == "gone" } }
            #expect(goneCount <= deletedCount, "seed \(seed)")
            let position = try world.position()
            for isFull in [false, true] { try await world.completeRun(isFull: isFull) }
            #expect(try world.writtenCount(since: position) == 0, "seed \(seed)")
        }
    }
}
