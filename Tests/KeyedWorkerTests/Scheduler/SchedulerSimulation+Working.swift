import Essentials
import Kafka
import Model

@testable import KeyedWorker

/// The worker's loop around its scheduler, one action at a time, with values for PostgreSQL and Kafka.
extension SchedulerSimulation {
    mutating func work(_ number: Int) throws {
        switch workers[number].operation {
        case .committing(let plan, let writes): return try commit(plan, writes, by: number)
        case .deferral(let deferrals): return try park(deferrals, by: number)
        case .nothing: break
        }
        if workers[number].scheduler.isStopping, isDone(number) { return restart(number) }
        workers[number].scheduler.assigned(
            Set(workers[number].readings.keys.map { TopicPartition(topic: "entry.events", partition: Int32($0)) }))
        if workers[number].scheduler.currentOutage(now: now) != nil { return }
        guard let action = workers[number].scheduler.next(now: now) else {
            workers[number].scheduler.succeeded()
            return try check(number)
        }
        try perform(action, by: number)
    }

    private mutating func isDone(_ number: Int) -> Bool {
        let scheduler = workers[number].scheduler
        if scheduler.isIdle || scheduler.hasOnlyLockedWork(now: now) || scheduler.outage != nil { return true }
        guard mistake == .stopsAtOnce else { return false }
        for (partition, reading) in workers[number].readings { partitions[partition].committed = reading.next }
        return true
    }

    /// Checks a worker's invariants.
    private func check(_ number: Int) throws {
        let (scheduler, limits) = (workers[number].scheduler, Self.limits)
        guard scheduler.inFlight.count <= limits.keysInFlightMax + limits.batchCountMax else {
            throw failure("\(scheduler.inFlight.count) keys are in flight")
        }
        let held = scheduler.inFlight.values.reduce(0) { $0 + $1.messages.count }
        guard held == scheduler.heldMessageCount else { throw failure("\(held) messages are held") }
        let calls = workers[number].calls
        guard Set(calls.map(\.key)).count == calls.count else { throw failure("a key is called twice at a time") }
        if let call = calls.first(where: { scheduler.inFlight[$0.key]?.isCalled != true }) {
            throw failure("a call for \(call.key.subject) is made without a waiting key")
        }
        for environment in 0..<Self.environmentCount {
            let count = calls.count { Int($0.key.environment.rawValue) == environment }
            guard count <= limits.inFlightMax else { throw failure("\(count) calls are in flight") }
        }
    }

    /// Checks that pending work survives any crash.
    func checkPendingWork(_ entry: Int) throws {
        guard entries[entry].needsWork, parked[entry] == nil, !unpublished.contains(entry) else { return }
        let partition = partitions[partition(entry)]
        if let last = partition.last[entry], last >= partition.committed { return }
        throw failure("no message or row has entry \(entry)")
    }

    private mutating func perform(_ action: WorkAction<SimulatedMessage, SimulatedCall>, by number: Int) throws {
        switch action {
        case .finish(let messages): try finish(messages, by: number)
        case .start(let started):
            workers[number].calls += started
            if mistake == .makesACallTwice, let first = started.first, happens(20) {
                workers[number].calls.append(first)
            }
        case .log(let event): count(event)
        case .take(let countMax, _, let isPaused): if !isPaused { try take(countMax, by: number) }
        case .takeDue(let request): takeDue(request, by: number)
        case .decide(let items, let environment): decide(items, in: environment, by: number)
        case .deferKeys(let deferrals, _): workers[number].operation = .deferral(deferrals)
        case .wait: break
        }
    }

    private mutating func count(_ event: SchedulerLogEvent) {
        switch event {
        case .backendUnavailable: count("opened circuits")
        case .backoffRequested: count("requested pauses")
        case .backendRecovered: count("closed circuits")
        case .keyDeadLettered: count("dead-lettered keys")
        case .locked: count("locked environments")
        case .unlocked: count("unlocked environments")
        }
    }

    // MARK: Messages

    private mutating func finish(_ messages: [SimulatedMessage], by number: Int) throws {
        for (partition, offset) in workers[number].finish(messages, mistake: mistake) {
            partitions[partition].committed = max(partitions[partition].committed, offset)
        }
        for message in messages {
            if let entry = workers[number].unseenEdits.removeValue(forKey: message) {
                throw failure("an edit of entry \(entry) is finished and was not processed")
            }
            let log = partitions[message.partition].messages
            if message.offset < log.count { try checkPendingWork(log[message.offset].entry) }
        }
    }

    private mutating func take(_ countMax: Int, by number: Int) throws {
        var left = countMax
        for partition in workers[number].readings.keys.sorted() {
            while left > 0, let reading = workers[number].readings[partition],
                reading.next < partitions[partition].messages.count, happens(800)
            {
                left -= 1
                count("messages")
                deliver(.init(partition: partition, offset: reading.next, assignment: reading.assignment), number)
            }
        }
    }

    private mutating func deliver(_ message: SimulatedMessage, _ number: Int) {
        workers[number].readings[message.partition]?.next = message.offset + 1
        workers[number].readings[message.partition]?.unfinished.append(message.offset)
        var (entry, position, isEdit) = partitions[message.partition].messages[message.offset]
        let key = key(entry)
        if mistake == .ignoresNewerPositions { position -= 1 }
        if mistake == .dropsNewerEvents, workers[number].scheduler.inFlight[key]?.isCalled == true {
            workers[number].scheduler.finished.append(message)
            return
        }
        if mistake == .finishesAtOnce { workers[number].scheduler.finished.append(message) }
        let place = TopicPartition(topic: "entry.events", partition: Int32(message.partition))
        if workers[number].scheduler.decisionHistory.covers(Int64(position), of: key, now: now) {
            count("covered events")
            if mistake == .finishesCoveredEventsAtOnce {
                workers[number].scheduler.finished.append(message)
                return
            }
        } else if isEdit, mistake != .finishesAtOnce {
            workers[number].unseenEdits[message] = entry
        }
        if mistake == .ignoresNewerEdits, workers[number].scheduler.inFlight[key] != nil { isEdit = false }
        workers[number].scheduler.received(
            message, of: key, at: Int64(position), isEdit: isEdit, from: place, now: now)
    }

    private mutating func takeDue(_ request: DueRequest, by number: Int) {
        if isDatabaseUnavailable { return fail(number) }
        for (environment, countMax) in request.expedited {
            let waiting = due(in: environment, by: number) {
                $0.deferral.reason == DeferralCause.noFreeSlot && $0.nextAt > now
            }
            for entry in waiting.prefix(countMax) { parked[entry]?.nextAt = now }
            workers[number].scheduler.expedited(environment, count: min(waiting.count, countMax), of: countMax)
        }
        var taken: [DeferredKeys.Due] = []
        for environment in (0..<Self.environmentCount).map({ EnvironmentID(rawValue: Int32($0)) }) {
            let countMax = min(request.exceptions[environment] ?? request.countMax, request.roomMax - taken.count)
            for entry in due(in: environment, by: number, where: { $0.nextAt <= now }).prefix(max(0, countMax)) {
                guard let row = parked[entry] else { continue }
                parked[entry]?.nextAt = now + Self.limits.dueLease
                taken.append(
                    DeferredKeys.Due(
                        environment: environment, subject: row.deferral.subject, partition: row.deferral.partition,
                        attemptCount: row.deferral.attemptCount))
            }
        }
        workers[number].scheduler.due(
            mistake == .dropsDueKeys ? [] : taken, of: request,
            deferredIn: Set(parked.keys.map { key($0).environment }))
    }

    /// Deferred entries of an environment, in the worker's partitions, the longest overdue first.
    private func due(
        in environment: EnvironmentID, by number: Int, where condition: (SimulatedRow) -> Bool
    ) -> [Int] {
        parked.filter { entry, row in
            !row.deferral.isDead && key(entry).environment == environment
                && workers[number].readings[partition(entry)] != nil && condition(row)
        }
        .sorted { ($0.value.nextAt, $0.key) < ($1.value.nextAt, $1.key) }.map(\.key)
    }

    // MARK: Decisions

    private mutating func decide(
        _ items: [ScheduledItem<SimulatedResult>], in environment: EnvironmentID, by number: Int
    ) {
        if isDatabaseUnavailable { return fail(number) }
        if locked.contains(Int(environment.rawValue)), happens(700) {
            let draw = Double(random.next() % 1_000) / 1_000
            return workers[number].scheduler.locked("locked", now: now, random: draw)
        }
        count("decisions")
        let items = mistake == .releasesUneditedKeys ? items : findDeferred(items, by: number)
        count("no edits", items.count { !$0.item.isEdit })
        var writes: [SimulatedWrite] = []
        let dispositions = items.map { item in
            let entry = self.number(item.item.subject, in: environment)
            let (next, after) = SimulatedRule.decide(item.item.origin, entry, entries[entry], now: now)
            writes.append(SimulatedWrite(entry: entry, basis: entries[entry].position, after: after))
            return next
        }
        let problem = uncallable.contains(Int(environment.rawValue)) ? "cannot be called" : nil
        var plan = workers[number].scheduler.plan(dispositions, problem: problem, now: now)
        if mistake == .releasesUneditedKeys {
            for (index, item) in items.enumerated() where !item.item.isEdit {
                if case .finished = dispositions[index] {
                    plan.released.append((item.item.subject.description, index))
                }
            }
        }
        workers[number].operation = .committing(plan, writes)
    }

    private mutating func commit(
        _ plan: WorkPlan<SimulatedCall>, _ writes: [SimulatedWrite], by number: Int
    ) throws {
        workers[number].operation = .nothing
        if isDatabaseUnavailable {
            guard mistake == .ignoresFailedWrites else { return fail(number) }
            return workers[number].scheduler.committed(plan, missed: [], now: now)
        }
        if writes.contains(where: { bad.contains($0.entry) }) {
            count("rejected")
            return workers[number].scheduler.rejected("bad")
        }
        var missed = Set(writes.indices.filter { entries[writes[$0].entry].position != writes[$0].basis })
        count("conflicts", missed.count)
        for (index, write) in writes.enumerated() where !missed.contains(index) && !plan.withheld.contains(index) {
            guard write.after != entries[write.entry] else { continue }
            entries[write.entry] = write.after
            entries[write.entry].position = write.basis + 1
            unpublished.insert(write.entry)
        }
        try checkEdits(plan, writes, missed: missed, by: number)
        let conflictedOrRolledBack = missed.union(plan.withheld)
        for deferral in plan.deferrals where !conflictedOrRolledBack.contains(deferral.decision) { put(deferral, plan) }
        for release in plan.released where !missed.contains(release.decision) {
            parked[writes[release.decision].entry] = nil
        }
        if mistake == .removesRowsOfWaitingKeys { for write in writes { parked[write.entry] = nil } }
        if mistake == .ignoresConflicts { missed = [] }
        var positions: [Int: Int64] = [:]
        for (index, write) in writes.enumerated() where !plan.withheld.contains(index) {
            positions[index] = Int64(entries[write.entry].position)
        }
        workers[number].scheduler.committed(plan, missed: missed, positions: positions, now: now)
        for write in writes { try checkPendingWork(write.entry) }
        if mistake == .callsRolledBackDecisions { for index in plan.withheld { callAnyway(writes[index], number) } }
    }

    private mutating func callAnyway(_ write: SimulatedWrite, _ number: Int) {
        let call = SimulatedCall(entry: write.entry, version: write.after.version, attempt: -1, kind: .write)
        workers[number].calls.append(
            StartedCall(key: key(write.entry), call: call, startBefore: now + .seconds(20), startedAt: now))
    }

    private mutating func count(_ what: String, _ count: Int) { counts[what, default: 0] += count }

    private mutating func put(_ deferral: DeferredKeys.Deferral, _ plan: WorkPlan<SimulatedCall>) {
        guard let environment = plan.items.first?.item.environment else { return }
        parked[number(deferral.subject, in: environment)] = SimulatedRow(
            deferral: deferral, nextAt: now + deferral.wait)
    }

    private mutating func park(_ deferrals: [DeferredKeys.Deferral], by number: Int) throws {
        workers[number].operation = .nothing
        if isDatabaseUnavailable { return fail(number) }
        guard let environment = workers[number].scheduler.deciding.first?.item.environment else { return }
        let entries = deferrals.map { self.number($0.subject, in: environment) }
        if mistake != .releasesWithoutARow {
            for (entry, deferral) in zip(entries, deferrals) {
                parked[entry] = SimulatedRow(deferral: deferral, nextAt: now + deferral.wait)
            }
        }
        for entry in entries { workers[number].clearUnseenEdits(of: entry) }
        workers[number].scheduler.deferred(now: now)
    }

    private mutating func fail(_ number: Int) {
        count("failures")
        if mistake == .dropsFailedBatches { workers[number].scheduler.deciding = [] }
        let draw = Double(random.next() % 1_000) / 1_000
        workers[number].scheduler.failed("PostgreSQL is unavailable", now: now, random: draw)
    }

    // MARK: Calls

    /// Ends one of a worker's calls.
    mutating func progressCall(of number: Int) throws {
        guard !workers[number].calls.isEmpty else { return }
        let index = Int(random.next() % UInt64(workers[number].calls.count))
        let started = workers[number].calls.remove(at: index)
        // Some wait for a thread.
        let sentAt = happens(100) ? now : started.startedAt
        let isInTime = sentAt < started.startBefore
        let found = isInTime ? answer(to: started, isOver: now >= sentAt + SimulatedRule.callMax) : nil
        let answer = found.map { SimulatedResult(attempt: started.call.attempt, found: $0) }
        if mistake == .losesResults, happens(20) { return }
        if let next = workers[number].scheduler.ended(started, answer: answer, now: now) {
            workers[number].calls.append(next)
        }
    }

    private mutating func answer(to started: StartedCall<SimulatedCall>, isOver: Bool) -> SimulatedResult.Outcome {
        let (entry, version) = (started.call.entry, started.call.version)
        count("calls")
        if isOver { return .unknown }
        if started.call.kind == .read { return backEnd.written[entry][version] == nil ? .notWritten : .written }
        if away.contains(environment(entry)) { return .away }
        guard !isCalm else {
            backEnd.write(version, of: entry)
            return .written
        }
        switch random.next() % 20 {
        case 0:
            backEnd.write(version, of: entry)
            return .unknown
        case 1:
            let delay = Duration.milliseconds(Int(random.next() % 10_000))
            backEnd.late.append((at: now + delay, entry: entry, version: version))
            return .unknown
        case 2: return .unknown
        case 3: return .refused
        case 4: return .away
        case 5: return .busy(.milliseconds(Int(random.next() % 5_000)))
        default:
            backEnd.write(version, of: entry)
            return .written
        }
    }
}
