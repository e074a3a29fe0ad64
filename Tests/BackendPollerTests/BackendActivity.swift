import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import BackendPoller

/// Random activity of people in a back end that is being polled.
struct BackendActivity {
    let seed: UInt64
    private var random: SplitMix64
    /// Live time entries with their owners.
    private var live: [Int: Int] = [:]
    private var (clock, date) = (0, 0)
    /// Whether some records become visible late; time then passes slowly, so that they are within the overlap.
    private let isLate: Bool
    /// Whether some runs are full comparisons.
    var isCompared = true

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix64(seed: seed)
        isLate = seed % 2 == 0
    }

    mutating func begin(_ world: inout PollerWorld) async throws {
        clock = [-600, 0, 600].randomElement(using: &random) ?? 0
        date = [-300, 0, clock].randomElement(using: &random) ?? 0
        try await pass(0, &world)
        for person in 0..<3 { live[try await world.create(of: person)] = person }
        try await world.completeRun(isFull: true)
    }

    mutating func step(_ world: inout PollerWorld) async throws {
        try await pass(Int.random(in: 0...(isLate ? 2 : 60), using: &random), &world)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<2:
            let person = Int.random(in: 0..<3, using: &random)
            live[try await world.create(of: person)] = person
        case 2..<6: try await change(&world)
        case 6: try await delete(&world)
        case 7: try world.beginRun(isFull: isCompared && Bool.random(using: &random))
        case 8: try world.crash()
        default:
            guard let poll = try world.openPolls().randomElement(using: &random) else {
                return try world.beginRun(isFull: false)
            }
            try await world.step(poll, isLost: Int.random(in: 0..<10, using: &random) == 0)
        }
    }

    /// Advances e-conomic's clock, so that a change gets its own time stamp.
    private mutating func pass(_ seconds: Int, _ world: inout PollerWorld) async throws {
        clock += seconds
        date += seconds
        let late = isLate && Bool.random(using: &random) ? Int.random(in: 1...200, using: &random) : 0
        try await world.post(
            "/sandbox/switches",
            """
            {"clockSkewSeconds": \(clock), "dateSkewSeconds": \(date), "pageItemsMax": 2, "visibleAfterMs": \(late)}
            """)
    }

    private mutating func change(_ world: inout PollerWorld) async throws {
        guard let number = live.keys.sorted().randomElement(using: &random) else { return }
        // Two states of a record with one time stamp would be indistinguishable below.
        try await pass(1, &world)
        let hours = Int.random(in: 1...12, using: &random)
        let day = PollerWorld.today.adding(days: Int.random(in: -5...5, using: &random))
        try await world.post(
            "/sandbox/entries",
            """
            {"number": \(number), "numberOfHours": \(hours), "date": "\(day)",
             "isApproved": \(Bool.random(using: &random))}
            """)
    }

    private mutating func delete(_ world: inout PollerWorld) async throws {
        guard live.count > 4, let number = live.keys.sorted().randomElement(using: &random) else { return }
        live[number] = nil
        try await world.post("/sandbox/entries", #"{"number": \#(number), "isDeleted": true}"#)
    }

    /// Asserts that all records are observed correctly after some more runs.
    ///
    /// - Parameter isFull: Whether deletions are observed too.
    func expectAllObserved(_ world: inout PollerWorld, isFull: Bool) async throws {
        let deadline = ContinuousClock.now + patienceMax
        while true {
            try await world.completeRun(isFull: isFull)
            var problem: String?
            for person in 0..<3 {
                var expected: [String: SeenRecord] = [:]
                for number in live.filter({ $0.value == person }).keys {
                    expected["\(number)"] = try await world.record(number, of: person)
                }
                var seen: [String: SeenRecord] = [:]
                for var record in try world.seen(of: person) {
                    record.toldRun = nil
                    if isFull || expected[record.backendId] != nil { seen[record.backendId] = record }
                }
                if seen != expected { problem = "person \(person): \(seen)\nbut there is \(expected)" }
            }
            guard let problem else { return }
            guard .now < deadline else {
                Issue.record("seed \(seed): \(problem)")
                return
            }
        }
    }
}
