import Essentials
import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres

@testable import KeyedWorker

/// Faults of a call.
enum Fault: CaseIterable, Sendable {
    case none
    /// Executed; the response is lost.
    case lostResponse
    /// Not executed; the outcome is unknown.
    case lostCall
    /// Executed later; the outcome is unknown.
    case late
    /// Not executed; the back end reports that it is unavailable.
    case unavailable
    /// The back end rejects it.
    case refused
}

/// An object's location and position in an event.
struct EventLocation {
    let position: Int64
    let editPosition: Int64
}

/// Two workers of one service on one database, each with the engine that `Worker` runs, in random order. Events are
/// repeated and reordered, results are late, a key moves to the other worker while it is in flight, and each worker may
/// be killed at any moment.
///
/// Time is a number of ticks.
struct RandomizedGroup<H: Handler> {
    typealias Scheduler = WorkScheduler<Int, PreparedCall<H>>
    typealias Make = @Sendable (H.Call) async -> H.CallResult

    /// Seconds per tick, long enough to make real time negligible.
    static var tickSeconds: Int { 1_000 }

    private struct Member {
        var scheduler: Scheduler
        var handler: H
        /// Messages that are not taken yet.
        var inbox: [Int] = []
        /// Number of crashes: results of calls from before are dropped.
        var life = 0
    }

    private struct Flight {
        let started: StartedCall<PreparedCall<H>>
        let member: Int
        let life: Int
        /// The last tick at which it may be sent.
        let sendBefore: Int
        var fault = Fault.none
    }

    /// Decisions that are not committed yet.
    struct Prepared {
        fileprivate let member: Int
        fileprivate let plan: WorkPlan<PreparedCall<H>>
        fileprivate let batch: WriteBatch
    }

    private let group: String
    private let environment: EnvironmentID
    /// Maximum number of ticks before a call is sent.
    private let callTicksMax: Int
    private let entryLog: EntryTimeline
    private let limits: WorkerLimits
    private let begin = ContinuousClock.now
    private var members: [Member]
    /// The member that has a key's partition.
    private var owners: [EventSubject: Int] = [:]
    private var order: [EventSubject] = []
    /// Unfinished messages.
    private var messages: [Int: (subject: EventSubject, place: EventLocation)] = [:]
    private var messageCount = 0
    private var newest: [EventSubject: EventLocation] = [:]
    private var flights: [Flight] = []
    private(set) var tick = 0
    private(set) var dead: [EventSubject: String] = [:]

    /// - Parameter handlers: One for each worker.
    init(
        _ handlers: [H], named group: String, in environment: EnvironmentID, callTicksMax: Int,
        _ entryLog: EntryTimeline
    ) {
        var limits = WorkerLimits()
        (limits.attemptsMax, limits.batchCountMax) = (1_000_000, 40)
        members = handlers.map { Member(scheduler: Scheduler(limits, now: .now), handler: $0) }
        self.limits = limits
        self.group = group
        self.environment = environment
        self.callTicksMax = callTicksMax
        self.entryLog = entryLog
    }

    private var now: ContinuousClock.Instant { begin + .seconds(tick * Self.tickSeconds) }

    private func partition(_ member: Int) -> TopicPartition { TopicPartition(topic: group, partition: Int32(member)) }

    // MARK: Input

    mutating func receive(of subject: EventSubject, at place: EventLocation) {
        if owners[subject] == nil {
            owners[subject] = order.count % members.count
            order.append(subject)
        }
        messageCount += 1
        messages[messageCount] = (subject, place)
        newest[subject] = place
        members[owners[subject] ?? 0].inbox.append(messageCount)
    }

    /// Repeats an earlier event.
    mutating func repeatEvent(_ random: inout SplitMix64) {
        guard let subject = order.randomElement(using: &random), let place = newest[subject] else { return }
        receive(of: subject, at: place)
    }

    /// Gives a key to the other worker while this one has it: both process it.
    mutating func share(_ random: inout SplitMix64) {
        let held = order.filter { subject in
            let key = WorkKey(environment: environment, subject: subject)
            return members[owners[subject] ?? 0].scheduler.inFlight[key] != nil
        }
        guard let subject = held.randomElement(using: &random), let owner = owners[subject] else { return }
        let next = (owner + 1) % members.count
        owners[subject] = next
        let again = messages.filter { $0.value.subject == subject }.keys.sorted()
        members[owner].inbox.removeAll(where: again.contains)
        members[next].inbox += again
    }

    /// Kills both: results of their calls are dropped, and their messages are redelivered.
    mutating func crash() {
        for index in members.indices {
            members[index].scheduler = Scheduler(limits, now: now)
            members[index].life += 1
            members[index].inbox = messages.filter { owners[$0.value.subject] == index }.keys.sorted()
        }
    }

    // MARK: Decisions

    /// Executes actions of the engines until one of them has items to decide.
    ///
    /// - Returns: `nil`: their cycle is over.
    mutating func decide(_ random: inout SplitMix64, on connection: inout Connection) throws -> Prepared? {
        for index in members.indices.shuffled(using: &random) {
            members[index].scheduler.assigned([partition(index)])
            while let action = members[index].scheduler.next(now: now) {
                switch action {
                case .decide(let items, _): return try decide(items, by: index, on: &connection)
                case .finish(let finished): finish(finished, by: index)
                case .start(let started): fly(started, by: index)
                case .log(.keyDeadLettered(let key, let reason)): dead[key.subject] = reason
                case .take(let countMax, _, _): take(countMax, by: index, &random)
                case .takeDue(let request): try takeDue(request, by: index, on: &connection)
                case .deferKeys(let deferrals, let environment):
                    try connection.run(DeferredKeys.deferKeys(deferrals, group: group, environment: environment))
                    members[index].scheduler.deferred(now: now)
                case .log, .wait: break
                }
            }
            members[index].scheduler.succeeded()
        }
        return nil
    }

    private mutating func decide(
        _ items: [ScheduledItem<H.CallResult>], by index: Int, on connection: inout Connection
    ) throws -> Prepared {
        var batch = WriteBatch(environment: environment)
        let handler = members[index].handler
        let decided = try members[index].handler.decide(
            items.map(\.item), in: environment, batch: &batch, on: &connection)
        let startBefore = now + .seconds((callTicksMax + 1) * Self.tickSeconds)
        let prepared = decided.map { disposition in
            let prepared = disposition.map { call in
                PreparedCall<H>(
                    call: call, kind: handler.kind(of: call), resultWhenSkipped: handler.resultWhenSkipped(call),
                    make: nil)
            }
            guard case .call(let call, _) = prepared else { return prepared }
            return .call(call, startBefore: startBefore)
        }
        let plan = members[index].scheduler.plan(prepared, now: now)
        plan.write(to: &batch, group: group)
        return Prepared(member: index, plan: plan, batch: batch)
    }

    mutating func commit(_ prepared: Prepared, on connection: inout Connection) throws {
        let outcome = try prepared.batch.commit(on: &connection)
        let missed = outcome.conflicts
        for (index, item) in prepared.plan.items.enumerated() {
            let what = missed.contains(index) ? "conflict" : "\(prepared.plan.dispositions[index])"
            entryLog.record(item.item.subject.id) {
                "\(tick): \(item.item.subject.kind) \(item.item.origin) -> \(what)"
            }
        }
        let positions = prepared.plan.positions(of: prepared.batch, after: outcome)
        members[prepared.member].scheduler.committed(prepared.plan, missed: missed, positions: positions, now: now)
    }

    private mutating func finish(_ finished: [Int], by index: Int) {
        for message in finished {
            guard let subject = messages[message]?.subject, owners[subject] == index else { continue }
            messages[message] = nil
        }
    }

    /// A random subset in random order.
    private mutating func take(_ countMax: Int, by index: Int, _ random: inout SplitMix64) {
        members[index].inbox.shuffle(using: &random)
        for message in members[index].inbox.prefix(countMax) {
            guard let (subject, place) = messages[message] else { continue }
            let key = WorkKey(environment: environment, subject: subject)
            members[index].scheduler.received(
                message, of: key, at: place.position, isEdit: place.position == place.editPosition,
                from: partition(index), now: now)
        }
        members[index].inbox.removeFirst(min(countMax, members[index].inbox.count))
    }

    private mutating func takeDue(_ request: DueRequest, by index: Int, on connection: inout Connection) throws {
        let partitions: Set = [partition(index)]
        for (environment, countMax) in request.expedited {
            let count = try DeferredKeys.expedite(
                group: group, environment: environment, partitions: partitions, countMax: countMax, on: &connection)
            members[index].scheduler.expedited(environment, count: count, of: countMax)
        }
        let (due, environments) = try DeferredKeys.takeDue(
            request, group: group, partitions: partitions, lease: limits.dueLease, on: &connection)
        members[index].scheduler.due(due, of: request, deferredIn: environments)
    }

    // MARK: Calls

    func caller(on connection: inout Connection) throws -> Make {
        try members[0].handler.caller(on: &connection, for: environment)
    }

    private mutating func fly(_ started: [StartedCall<PreparedCall<H>>], by index: Int) {
        flights += started.map {
            Flight(started: $0, member: index, life: members[index].life, sendBefore: tick + callTicksMax)
        }
    }

    /// Makes calls, each with the probability `percent`, some of them with faults.
    ///
    /// - Parameter go: Makes a call, or returns the result of a fault.
    mutating func fly(
        _ random: inout SplitMix64, percent: Int, faults: [Fault], lateTicksMax: Int,
        _ go: @escaping @Sendable (H.Call, Fault) async -> H.CallResult
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
                    started: flight.started, member: flight.member, life: -1,
                    sendBefore: tick + Int.random(in: 0...lateTicksMax, using: &random), fault: .late))
        }
        flights = staying
        await land(leaving, go)
    }

    private mutating func land(
        _ leaving: [Flight], _ go: @escaping @Sendable (H.Call, Fault) async -> H.CallResult
    ) async {
        // One after the other, so that numbers from the back end are reproducible by the seed.
        for flight in leaving {
            let answer = await go(flight.started.call.call, flight.fault)
            entryLog.record(flight.started.key.subject.id) {
                "\(tick): \(isReceived(flight) ? "" : "dropped ")\(flight.fault) \(flight.started.call.call) -> "
                    + "\(answer)"
            }
            end(flight, answer)
        }
    }

    private func isReceived(_ flight: Flight) -> Bool { members[flight.member].life == flight.life }

    /// - Parameter answer: `nil`: not made in time.
    private mutating func end(_ flight: Flight, _ answer: H.CallResult?) {
        guard isReceived(flight) else { return }
        let next = members[flight.member].scheduler.ended(flight.started, answer: answer, now: now)
        fly(next.map { [$0] } ?? [], by: flight.member)
    }

    /// Advances time: late calls are executed, others expire.
    mutating func pass(
        _ ticks: Int, on connection: inout Connection, _ go: @escaping @Sendable (H.Call, Fault) async -> H.CallResult
    ) async throws {
        tick += ticks
        try connection.run(
            """
            UPDATE pipeline.parked SET next_at = next_at - make_interval(secs => \(Double(ticks * Self.tickSeconds)))
            WHERE group_name = \(group)
            """)
        let over = flights.filter { $0.sendBefore < tick }
        flights.removeAll { $0.sendBefore < tick }
        for flight in over where flight.fault == .none { end(flight, nil) }
        await land(
            over.filter { $0.fault == .late }.map {
                var flight = $0
                flight.fault = .none
                return flight
            }, go)
    }

    // MARK: End

    /// Nothing is in flight, and no message is left.
    var isIdle: Bool {
        flights.allSatisfy { $0.fault == .late } && members.allSatisfy { $0.inbox.isEmpty && $0.scheduler.isIdle }
    }

    /// Unfinished keys.
    var busy: [EventSubject] { Set(messages.values.map(\.subject)).sorted { $0.description < $1.description } }

    /// Ticks until a deferred key is due, or a late call is executed.
    mutating func ticksToNext(on connection: inout Connection) throws -> Int? {
        let rows = try connection.run(
            """
            SELECT extract(epoch FROM min(next_at) - now())::float8 FROM pipeline.parked
            WHERE group_name = \(group) AND NOT is_dead
            """)
        let seconds: Double? = try rows[0].optional(0)
        let due = seconds.map { max(1, Int(($0 / Double(Self.tickSeconds)).rounded(.up))) }
        return ([due].compactMap(\.self) + flights.map { $0.sendBefore + 1 - tick }).min()
    }
}
