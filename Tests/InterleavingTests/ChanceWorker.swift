import Essentials
import FoundationEssentials
import Model
import Postgres
import Realms

@testable import Work

/// What can happen to a call on its way.
enum Fault: CaseIterable, Sendable {
    case none
    /// It was done, and its answer is lost.
    case lostAnswer
    /// It never arrived, and nobody knows.
    case lostCall
    /// Nobody knows, and it is done a while later.
    case late
    /// The back end did nothing, and says so.
    case away
    /// The back end refuses it.
    case refused
}

/// Does with a handler what a worker does with its topic, in an order that chance decides: events are repeated and
/// overtake each other, answers come late, two workers have the same key, and each may be killed at any moment.
///
/// Time is a number of ticks.
struct ChanceWorker<H: Handler> {
    /// A tick's seconds: so many that those which really pass do not count beside it.
    static var tickSeconds: Int { 1_000 }

    typealias Answer = H.Answer
    typealias Make = @Sendable (H.Call) async -> H.Answer

    private struct Key {
        var dueAt: Int?
        var attemptCount = 0
        /// Its decision, or a call, is under way.
        var isHeld = false
        var isOverdue = false
    }

    private struct Flight {
        let subject: EventSubject
        let call: H.Call
        /// The last tick at which it may be sent.
        let sendBefore: Int
        /// Whether the worker that made it is still there.
        var isHeard = true
        var fault = Fault.none
    }

    /// Decisions that are still to be committed.
    struct Prepared {
        fileprivate let inputs: [WorkItem<H.Answer>]
        fileprivate let nexts: [Disposition<H.Call>]
        fileprivate let batch: WriteBatch
    }

    private var handler: H
    private let environment: EnvironmentID
    /// How long a call may wait before it is sent.
    private let callTicksMax: Int
    private let chronicle: Chronicle
    private var keys: [EventSubject: Key] = [:]
    private var order: [EventSubject] = []
    private var flights: [Flight] = []
    /// `nil`: it was not made in time.
    private var answers: [(subject: EventSubject, answer: H.Answer?)] = []
    private(set) var tick = 0
    private(set) var dead: [EventSubject: String] = [:]

    init(_ handler: H, in environment: EnvironmentID, callTicksMax: Int, _ chronicle: Chronicle) {
        self.handler = handler
        self.environment = environment
        self.callTicksMax = callTicksMax
        self.chronicle = chronicle
    }

    // MARK: What comes in

    mutating func hear(of subject: EventSubject) {
        if keys[subject] == nil { order.append(subject) }
        var key = keys[subject] ?? Key()
        if key.isHeld {
            key.isOverdue = true
        } else {
            (key.dueAt, key.attemptCount) = (tick, 0)
        }
        keys[subject] = key
    }

    /// Something that was published before comes again.
    mutating func repeatEvent(_ random: inout SplitMix64) {
        if let subject = order.randomElement(using: &random) { hear(of: subject) }
    }

    /// Another worker gets a key while this one has it; it is handled twice at once.
    mutating func share(_ random: inout SplitMix64) {
        guard let subject = order.filter({ keys[$0]?.isHeld == true }).randomElement(using: &random) else { return }
        keys[subject]?.isHeld = false
        keys[subject]?.dueAt = tick
    }

    /// It is killed: nobody hears what comes of its calls, and its messages come to another one.
    mutating func crash() {
        for subject in order where keys[subject]?.isHeld == true {
            keys[subject] = Key(dueAt: tick)
        }
        for index in flights.indices { flights[index].isHeard = false }
        answers = []
    }

    // MARK: Deciding

    /// Some of the answers and of the keys that are due, each with the chance `percent`.
    mutating func take(_ random: inout SplitMix64, percent: Int, countMax: Int = 40) -> [WorkItem<H.Answer>] {
        var taken: [EventSubject: WorkItem<H.Answer>.Origin] = [:]
        var subjects: [EventSubject] = []
        var left: [(EventSubject, H.Answer?)] = []
        for (subject, answer) in answers {
            guard subjects.count < countMax, taken[subject] == nil, random.happens(percent) else {
                left.append((subject, answer))
                continue
            }
            taken[subject] = answer.map { .answer($0) } ?? .retry
            subjects.append(subject)
        }
        answers = left
        for subject in order.shuffled(using: &random) {
            guard subjects.count < countMax else { break }
            guard let key = keys[subject], let dueAt = key.dueAt, dueAt <= tick, !key.isHeld, taken[subject] == nil,
                random.happens(percent)
            else { continue }
            taken[subject] = key.attemptCount == 0 ? .event : .retry
            subjects.append(subject)
        }
        return subjects.shuffled(using: &random).compactMap { subject in
            keys[subject]?.isHeld = true
            keys[subject]?.dueAt = nil
            return taken[subject].map {
                WorkItem(
                    environment: environment, subject: subject, origin: $0,
                    attemptCount: keys[subject]?.attemptCount ?? 0)
            }
        }
    }

    mutating func decide(_ inputs: [WorkItem<H.Answer>], on connection: inout Connection) throws -> Prepared {
        var batch = WriteBatch(environment: environment)
        let nexts = try handler.decide(inputs, in: environment, batch: &batch, on: &connection)
        return Prepared(inputs: inputs, nexts: nexts, batch: batch)
    }

    /// - Returns: What missed, to be decided again.
    mutating func commit(_ prepared: Prepared, on connection: inout Connection) throws -> [WorkItem<H.Answer>] {
        let missed = try prepared.batch.commit(on: &connection).missed
        for (index, input) in prepared.inputs.enumerated() {
            let what = missed.contains(index) ? "missed" : "\(prepared.nexts[index])"
            chronicle.note(input.subject.id) { "\(tick): \(input.subject.kind) \(input.origin) -> \(what)" }
            if !missed.contains(index) { follow(prepared.nexts[index], input) }
        }
        return prepared.inputs.indices.filter(missed.contains).map { prepared.inputs[$0] }
    }

    private mutating func follow(_ next: Disposition<H.Call>, _ input: WorkItem<H.Answer>) {
        var key = keys[input.subject] ?? Key()
        (key.isHeld, key.dueAt) = (false, nil)
        switch next {
        case .finished: key.attemptCount = 0
        case .again: key.dueAt = tick
        case .call(let call, _):
            key.isHeld = true
            flights.append(Flight(subject: input.subject, call: call, sendBefore: tick + callTicksMax))
        case .park(_, let after, let cause):
            let seconds = Int(after.components.seconds) + (after.components.attoseconds > 0 ? 1 : 0)
            key.dueAt = tick + (seconds + Self.tickSeconds - 1) / Self.tickSeconds
            key.attemptCount = input.attemptCount + (cause == .planned ? 0 : 1)
        case .dead(let reason): dead[input.subject] = reason
        }
        if key.isOverdue, !key.isHeld { key = Key(dueAt: tick) }
        keys[input.subject] = key
    }

    // MARK: Calling

    func caller(on connection: inout Connection) throws -> Make {
        try handler.caller(on: &connection, for: environment)
    }

    /// Some calls are made, each with the chance `percent`, and some of them go wrong.
    ///
    /// - Parameter go: Makes a call, or says what a fault makes of it.
    mutating func fly(
        _ random: inout SplitMix64, percent: Int, faults: [Fault], lateTicksMax: Int,
        _ go: @escaping @Sendable (H.Call, Fault) async -> H.Answer
    ) async {
        var leaving: [Flight] = []
        var staying: [Flight] = []
        for var flight in flights {
            guard random.happens(percent), flight.fault == .none else {
                staying.append(flight)
                continue
            }
            flight.fault = faults.randomElement(using: &random) ?? .none
            leaving.append(flight)
            guard flight.fault == .late else { continue }
            staying.append(
                Flight(
                    subject: flight.subject, call: flight.call,
                    sendBefore: tick + Int.random(in: 0...lateTicksMax, using: &random), isHeard: false, fault: .late))
        }
        flights = staying
        await land(leaving, go)
    }

    private mutating func land(
        _ leaving: [Flight], _ go: @escaping @Sendable (H.Call, Fault) async -> H.Answer
    ) async {
        var found: [H.Answer] = []
        // One after the other: numbers that the back end gives would otherwise be others when a seed is repeated.
        for flight in leaving { found.append(await go(flight.call, flight.fault)) }
        for (index, flight) in leaving.enumerated() {
            chronicle.note(flight.subject.id) {
                "\(tick): \(flight.isHeard ? "" : "unheard ")\(flight.fault) \(flight.call) -> "
                    + "\(found[index])"
            }
            if flight.isHeard { answers.append((flight.subject, found[index])) }
        }
    }

    /// Time passes: late calls are done, others are never sent.
    mutating func pass(_ ticks: Int, _ go: @escaping @Sendable (H.Call, Fault) async -> H.Answer) async {
        tick += ticks
        let over = flights.filter { $0.sendBefore < tick }
        flights.removeAll { $0.sendBefore < tick }
        for flight in over where flight.fault == .none && flight.isHeard { answers.append((flight.subject, nil)) }
        await land(
            over.filter { $0.fault == .late }.map {
                var flight = $0
                flight.fault = .none
                return flight
            }, go)
    }

    // MARK: At the end

    /// Nothing is under way, and nothing is due now.
    var isIdle: Bool {
        flights.allSatisfy { $0.fault == .late } && answers.isEmpty
            && !keys.values.contains { $0.dueAt.map { $0 <= tick } ?? false }
    }

    /// Keys that are not done with.
    var busy: [EventSubject] { order.filter { keys[$0]?.isHeld == true || keys[$0]?.dueAt != nil } }

    /// Ticks until a parked key is due, or a late call is done.
    var ticksToNext: Int? {
        (keys.values.compactMap(\.dueAt).filter { $0 > tick } + flights.map { $0.sendBefore + 1 }).min().map {
            $0 - tick
        }
    }
}

/// What happened to each entry, for the one that ends wrong.
final class Chronicle {
    private var lines: [UUID: [String]] = [:]

    static let linesMax = 60
    static let lengthMax = 500

    /// What only comes again is told once.
    func note(_ entry: UUID, _ line: () -> String) {
        let line = String(line().prefix(Self.lengthMax))
        func withoutTick(_ line: String) -> Substring { line.drop { $0 != ":" } }
        if let last = lines[entry]?.last, withoutTick(last) == withoutTick(line) { return }
        lines[entry, default: []].append(line)
    }

    func story(of entry: UUID) -> String { (lines[entry] ?? []).suffix(Self.linesMax).joined(separator: "\n    ") }
}

extension SplitMix64 {
    mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func id() -> UUID {
        func bytes(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
        let all = bytes(next()) + bytes(next())
        return unsafe all.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
