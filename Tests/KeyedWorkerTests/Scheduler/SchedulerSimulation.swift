import Essentials
import FoundationEssentials
import Kafka
import Model

@testable import KeyedWorker

/// Two workers of one group, with everything around them as values: a broker's partitions, PostgreSQL's rows, devices,
/// a back end, and time. The order of events is random, and reproducible by its seed.
struct SchedulerSimulation {
    static let entryCount = 12
    static let environmentCount = 2
    static let partitionCount = 3

    var random: SplitMix64
    let mistake: Mistake?
    let begin: Instant
    var now: Instant
    var entries = Array(repeating: SimulatedEntry(), count: entryCount)
    var parked: [Int: SimulatedRow] = [:]
    var partitions = Array(repeating: SimulatedPartition(), count: partitionCount)
    var backEnd = SimulatedBackEnd(written: Array(repeating: [:], count: entryCount))
    var workers: [SimulatedWorker] = []
    /// Entries that changed and have no message yet.
    var unpublished: Set<Int> = []
    /// Entries whose rows PostgreSQL rejects.
    var bad: Set<Int> = []
    /// Environments whose back end is unavailable, those that are locked, and those that cannot be called.
    var away: Set<Int> = []
    var locked: Set<Int> = []
    var uncallable: Set<Int> = []
    var isDatabaseUnavailable = false
    /// No further faults are injected.
    var isCalm = false
    var counts: [String: Int] = [:]
    private(set) var stepCount = 0
    private var assignmentCount = 0
    private let keys: [WorkKey]
    private let numbers: [WorkKey: Int]

    static let limits: WorkerLimits = {
        var limits = WorkerLimits()
        (limits.batchCountMax, limits.inFlightMax, limits.keysInFlightMax, limits.attemptsMax) = (4, 2, 8, 1_000)
        limits.circuit = CircuitBreaker(failuresMax: 3, waitMin: .seconds(2), waitMax: .seconds(10))
        limits.dueInterval = .milliseconds(500)
        return limits
    }()

    init(seed: UInt64, mistake: Mistake? = nil) throws {
        random = SplitMix64(seed: seed)
        self.mistake = mistake
        begin = .now
        now = begin
        keys = try (0..<Self.entryCount).map { number in
            WorkKey(
                environment: EnvironmentID(rawValue: Int32(number % Self.environmentCount)),
                subject: EventSubject(
                    realm: try .user("p\(number / 4)@example.com"), kind: .timeEntry,
                    id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(number)))))
        }
        numbers = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1, $0) })
        workers = [SimulatedWorker(Self.limits, now: now), SimulatedWorker(Self.limits, now: now)]
        for partition in partitions.indices { assign(partition, to: partition % 2) }
    }

    func number(_ subject: EventSubject, in environment: EnvironmentID) -> Int {
        numbers[WorkKey(environment: environment, subject: subject)] ?? 0
    }

    func key(_ entry: Int) -> WorkKey { keys[entry] }

    func environment(_ entry: Int) -> Int { entry % Self.environmentCount }

    func partition(_ entry: Int) -> Int { entry / 2 % Self.partitionCount }

    mutating func happens(_ permille: Int) -> Bool { Int(random.next() % 1_000) < permille }

    mutating func count(_ what: String) { counts[what, default: 0] += 1 }

    mutating func pass(_ duration: Duration) {
        now += duration
        backEnd.pass(to: now)
    }

    // MARK: Steps

    /// One random event.
    mutating func step() throws {
        stepCount += 1
        switch random.next() % 64 {
        case 0..<34: try work(Int(random.next() % 2))
        case 34..<46: try progressCall(of: Int(random.next() % 2))
        case 46..<50: edit()
        case 50..<55: publish()
        case 55..<62: pass(.milliseconds(Int(random.next() % 200)))
        default: if !isCalm { injectFault() }
        }
    }

    /// Runs until all is quiescent, and checks the result.
    mutating func settle() throws {
        isCalm = true
        (away, locked, uncallable, isDatabaseUnavailable) = ([], [], [], false)
        for number in workers.indices where workers[number].scheduler.isStopping { restart(number) }
        bad = []
        let most = stepCount + 60_000
        while !isQuiescent {
            guard stepCount < most else { throw failure("does not become quiescent: \(pendingWork)") }
            for number in workers.indices { try work(number) }
            for number in workers.indices { try progressCall(of: number) }
            publish()
            // An operator retries dead-lettered keys.
            for (entry, row) in parked where row.deferral.isDead { revive(entry, row) }
            pass(.milliseconds(unpublished.isEmpty && workers.allSatisfy(\.calls.isEmpty) ? 400 : 20))
            stepCount += 6
        }
        count("quiescent states")
        for entry in entries.indices {
            let state = entries[entry]
            guard state.version == state.recorded, state.attempt == nil else {
                throw failure("entry \(entry) is unfinished: \(state)")
            }
            guard state.version == 0 || backEnd.written[entry][state.version] == 1 else {
                throw failure(
                    "entry \(entry)'s version \(state.version) was not written once: \(backEnd.written[entry])")
            }
        }
        isCalm = false
    }

    private mutating func revive(_ entry: Int, _ row: SimulatedRow) {
        parked[entry] = SimulatedRow(
            deferral: DeferredKeys.Deferral(
                subject: row.deferral.subject, partition: row.deferral.partition, reason: "revived", isDead: false,
                isCircuit: false, attemptCount: 0, wait: .zero, decision: 0), nextAt: now)
    }

    private var isQuiescent: Bool {
        unpublished.isEmpty && parked.isEmpty && backEnd.late.isEmpty && workers.allSatisfy { $0.scheduler.isIdle }
            && partitions.allSatisfy { $0.committed == $0.messages.count }
    }

    private var pendingWork: String {
        "parked \(parked.keys.sorted()), in flight \(workers.map(\.scheduler.inFlight.count)), unread "
            + "\(partitions.map { $0.messages.count - $0.committed }), calls \(workers.map(\.calls.count))"
    }

    func failure(_ what: String) -> SimulationFailure {
        SimulationFailure(description: "step \(stepCount), \(now - begin): \(what)")
    }

    // MARK: Devices and the relay

    private mutating func edit() {
        let entry = Int(random.next() % UInt64(Self.entryCount))
        entries[entry].version += 1
        entries[entry].position += 1
        entries[entry].editPosition = entries[entry].position
        unpublished.insert(entry)
    }

    /// Publishes also writes of workers.
    private mutating func publish() {
        guard let entry = unpublished.min() else { return }
        unpublished.remove(entry)
        partitions[partition(entry)].append(entry, entries[entry])
    }

    // MARK: Faults

    private mutating func injectFault() {
        switch random.next() % 40 {
        case 0..<4: toggle(\.away)
        case 4..<7: toggle(\.locked)
        case 7..<9: toggle(\.uncallable)
        case 9..<13: isDatabaseUnavailable.toggle()
        case 13..<15: crash(Int(random.next() % 2))
        case 15..<18: moveAPartition()
        case 18..<19: loseTransport()
        case 19..<21: workers[Int(random.next() % 2)].scheduler.stop()
        case 21..<24: if bad.isEmpty { bad = [Int(random.next() % UInt64(Self.entryCount))] } else { bad = [] }
        case 24..<26: pass(.seconds(Int(random.next() % 90)))
        case 26..<30: repeatAMessage()
        default: pass(.seconds(Int(random.next() % 4)))
        }
    }

    private mutating func toggle(_ property: WritableKeyPath<SchedulerSimulation, Set<Int>>) {
        let environment = Int(random.next() % UInt64(Self.environmentCount))
        if self[keyPath: property].remove(environment) == nil { self[keyPath: property].insert(environment) }
    }

    /// A message is repeated, as by a relay that was killed.
    private mutating func repeatAMessage() {
        unpublished.insert(Int(random.next() % UInt64(Self.entryCount)))
    }

    /// The broker loses its content: the relay publishes all objects again, and all messages are read from the
    /// beginning.
    private mutating func loseTransport() {
        count("lost transports")
        for number in partitions.indices {
            partitions[number] = SimulatedPartition()
            for entry in entries.indices where partition(entry) == number {
                partitions[number].append(entry, entries[entry])
            }
            if let owner = owner(of: number) { assign(number, to: owner) }
        }
    }

    private func owner(of partition: Int) -> Int? { workers.firstIndex { $0.readings[partition] != nil } }

    private mutating func assign(_ partition: Int, to worker: Int) {
        assignmentCount += 1
        workers[worker].readings[partition] = .init(
            assignment: assignmentCount, next: partitions[partition].committed)
    }

    private mutating func moveAPartition() {
        count("moves")
        let partition = Int(random.next() % UInt64(Self.partitionCount))
        guard let from = owner(of: partition) else { return }
        workers[from].readings[partition] = nil
        assign(partition, to: happens(300) ? from : 1 - from)
    }

    /// A crash: the results of its calls are lost, though some calls are still in flight.
    private mutating func crash(_ number: Int) {
        count("crashes")
        for call in workers[number].calls where call.call.kind == .write && now < call.startBefore && happens(500) {
            let delay = Duration.seconds(Int(random.next() % 20)) + SimulatedRule.lateMax
            backEnd.late.append((at: now + delay, entry: call.call.entry, version: call.call.version))
        }
        restart(number)
    }

    /// Another process replaces it.
    mutating func restart(_ number: Int) {
        let partitions = workers[number].readings.keys.sorted()
        workers[number] = SimulatedWorker(Self.limits, now: now)
        for partition in partitions { assign(partition, to: number) }
    }
}
