import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// One device, one gateway and one server in random steps: requests are lost, repeated and delayed, and the server
/// changes statuses in between.
///
/// After every step:
/// 1. a device's request keeps the status, or sets `suggestion` or `draft`;
/// 2. a recorded entry is never changed by a device;
/// 3. a repeated request changes nothing and gets the first results;
/// 4. a device changes server fields in one way only: it requests a deletion;
/// 5. a device's request never removes an entry that a back end may have, and a tombstone stays one;
/// 6. every status change is permitted;
/// 7. deciding a mutation again on its own result writes the same result;
/// 8. each sequence is applied once, in order;
/// 9. every stored entry decodes as a `TimeEntry`.
@Suite(.ownThreads) struct MutationSimulationTests {
    @Test(arguments: [1, 2, 15_330] + Seeds.random(1, for: "mutations"))
    func invariantsHoldInEveryOrder(seed: UInt64) throws {
        var simulation = Simulation(seed: seed)
        for step in 0..<40_000 {
            do { try simulation.step() } catch { throw Violation(text: "seed \(seed), step \(step): \(error)") }
        }
        #expect(simulation.appliedCount > 3000, "seed \(seed)")
        #expect(simulation.tombstoneCount > 100, "seed \(seed)")
        #expect(simulation.statusesSeen.count == EntryStatus.allCases.count, "seed \(seed)")
    }
}

struct Violation: Error { let text: String }

struct Simulation {
    private typealias Numbered = (sequence: Int64, mutation: Mutation)

    private var random: SplitMix64
    private var objects: [UUID: StoredObject] = [:]
    private var ids: [UUID] = []
    private var sent: [Numbered] = []
    private var expected: Int64 = 1
    private var processed: Set<Int64> = []
    private(set) var appliedCount = 0
    private(set) var tombstoneCount = 0
    private(set) var statusesSeen: Set<EntryStatus> = []

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func step() throws {
        if ids.count < 8 || Int.random(in: 0..<50, using: &random) == 0 { startEntry() }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4: try post([write()])
        case 4..<6: try repeatOrSkip()
        default: try moveOnServer()
        }
    }

    /// The device edits the eight latest entries.
    private mutating func startEntry() {
        ids.append(UUID())
        if ids.count > 8 { ids.removeFirst() }
    }

    private mutating func write() -> Numbered {
        let fields = [
            "{}", #"{"status":"draft"}"#, #"{"status":"suggestion"}"#, #"{"status":"released"}"#, #"{"text":"a"}"#,
            #"{"text":null,"durationSeconds":60}"#, #"{"submitRequested":true}"#, #"{"backendId":"8"}"#, "[]",
            #"{"status":"draft","text":"b","submitRequested":true}"#, #"{"deleteRequested":false}"#,
        ]
        let operations: [Mutation.Operation] = [.put, .put, .patch, .patch, .patch, .delete]
        let operation = operations.randomElement(using: &random) ?? .put
        let mutation = Mutation(
            operation: operation, kind: .timeEntry, id: ids.randomElement(using: &random) ?? UUID(),
            fields: operation == .delete ? nil : fields.randomElement(using: &random).map { Array($0.utf8) })
        sent.append((Int64(sent.count) + 1, mutation))
        return sent[sent.count - 1]
    }

    /// Sends a request again, from any point on, or one with missing numbers.
    private mutating func repeatOrSkip() throws {
        guard !sent.isEmpty else { return }
        let start = Int.random(in: max(0, sent.count - 20)..<sent.count, using: &random)
        try post(Array(sent[start...].prefix(Int.random(in: 1...5, using: &random))))
        if Int.random(in: 0..<4, using: &random) == 0 { try post([(expected + 1, sent[start].mutation)]) }
    }

    private mutating func post(_ request: [Numbered]) throws {
        let before = objects
        guard let replayCount = MutationRequest.with(request.map(\.sequence)).replayCount(expected: expected) else {
            guard objects == before else { throw Violation(text: "8: a gap was applied") }
            return
        }
        for numbered in request.prefix(replayCount) where !processed.contains(numbered.sequence) {
            throw Violation(text: "3: a mutation that was not processed counts as a repeat")
        }
        for numbered in request.dropFirst(replayCount) {
            guard numbered.sequence == expected, processed.insert(expected).inserted else {
                throw Violation(text: "8: \(numbered.sequence) instead of \(expected)")
            }
            try apply(numbered.mutation)
            expected += 1
        }
        let isRepeat = replayCount == request.count
        guard !isRepeat || objects == before else { throw Violation(text: "3: a repeat changed something") }
    }

    private mutating func apply(_ mutation: Mutation) throws {
        let before = objects[mutation.id]
        let change = try? MutationRules.decide(mutation, current: before)
        let after = try Self.result(of: change, on: before)
        try checkDevice(before, after)
        // 7: the decision may differ (an insert becomes a merge), its result must not.
        let again = try Self.result(of: try? MutationRules.decide(mutation, current: after), on: after)
        guard try entry(again) == entry(after), (again?.fields == nil) == (after?.fields == nil) else {
            throw Violation(text: "7: \(mutation)")
        }
        objects[mutation.id] = after
        if change != nil { appliedCount += 1 }
        if change == .tombstone { tombstoneCount += 1 }
    }

    /// - Parameter change: `nil`: the mutation is rejected.
    private static func result(of change: MutationChange?, on object: StoredObject?) throws -> StoredObject? {
        guard let change else { return object }
        switch change {
        case .insert(let fields): return .live(fields: fields)
        case .merge(let fields): return .live(fields: try merged(object, fields))
        case .requestDeletion: return .live(fields: try merged(object, Array(#"{"deleteRequested":true}"#.utf8)))
        case .tombstone: return .tombstone
        case .unchanged: return object
        }
    }

    private static func merged(_ object: StoredObject?, _ patch: [UInt8]) throws -> [UInt8] {
        guard let fields = object?.fields else { throw Violation(text: "5: merged into nothing") }
        return try JSONObject(fields).merging(try JSONObject(patch))
    }

    private func checkDevice(_ before: StoredObject?, _ after: StoredObject?) throws {
        let (old, new) = (try entry(before), try entry(after))
        if case .tombstone = before, after != .tombstone { throw Violation(text: "5: a tombstone became an object") }
        guard let old else {
            guard new.map({ EntryStatus.deviceMay(set: $0.status) && $0.backendId == nil }) ?? true else {
                throw Violation(text: "1: a new entry is \(String(describing: new))")
            }
            return
        }
        guard let new else {
            let mayVanish = old.backendId == nil && [.suggestion, .draft, .invalid].contains(old.status)
            guard mayVanish else { throw Violation(text: "5: a \(old.status) entry vanished") }
            return
        }
        guard old.status != .recorded || old == new else { throw Violation(text: "2: a recorded entry changed") }
        guard new.status == old.status || EntryStatus.deviceMay(set: new.status) else { throw Violation(text: "1") }
        guard new.status == old.status || old.status.deviceMay(moveTo: new.status) else { throw Violation(text: "6") }
        guard !old.status.isHandedIn || new == old || new.submitRequested != nil else {
            throw Violation(text: "7: an edit of a \(old.status) entry has no submitRequested")
        }
        guard new.backendId == old.backendId else { throw Violation(text: "4: backendId") }
        guard new.deleteRequested == old.deleteRequested || new.deleteRequested == true else {
            throw Violation(text: "4")
        }
    }

    /// Changes the status of an entry as the server does.
    private mutating func moveOnServer() throws {
        guard let id = ids.randomElement(using: &random), var entry = try entry(objects[id]) else { return }
        statusesSeen.insert(entry.status)
        guard entry.submitRequested == true || !EntryStatus.deviceMay(set: entry.status) else { return }
        if entry.deleteRequested == true, Bool.random(using: &random) {
            objects[id] = .tombstone
            return
        }
        let next = entry.status.successors.filter { !EntryStatus.deviceMay(set: $0) }
        guard let status = next.randomElement(using: &random) else { return }
        entry.status = status
        if status == .released { entry.backendId = "7" }
        objects[id] = .live(fields: Array(try JSONEncoder().encode(entry)))
    }

    private func entry(_ object: StoredObject?) throws -> TimeEntry? {
        try object?.fields.map { try JSONDecoder().decode(TimeEntry.self, from: Data($0)) }
    }
}
