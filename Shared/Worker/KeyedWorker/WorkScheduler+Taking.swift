import Essentials
import Kafka
import Model

/// What comes in: messages, parked keys that are due, answers of calls.
extension WorkScheduler {
    /// A message of a key came.
    ///
    /// - Parameters:
    ///   - position: The object's, as the message tells it. What was decided from there on is not decided again for it:
    ///     its key is done with, or parked, or still in flight, and then the message is finished with the key.
    ///   - isEdit: Whether a device or an integration was at that position.
    ///   - trace: What the change belongs to.
    mutating func received(
        _ message: Message, of key: WorkKey, at position: Int64, isEdit: Bool, from partition: TopicPartition,
        trace: TraceContext? = nil, now: ContinuousClock.Instant
    ) {
        let isKnown = decidedPositions.includes(position, of: key, now: now)
        if !isKnown { newsAt = now }
        if inFlight[key] != nil {
            // Its earlier event, or a call, is under way: with news the key is decided again afterwards.
            heldMessageCount += 1
            inFlight[key]?.messages.append(message)
            if !isKnown {
                inFlight[key]?.isDirty = true
                inFlight[key]?.newsTrace = trace
                // What is still to be decided is decided from what is there by then: from this event's change too.
                if inFlight[key]?.isCalled == false { inFlight[key]?.trace = trace }
                if isEdit { inFlight[key]?.isEdited = true }
            }
            return
        }
        guard !isKnown else {
            finished.append(message)
            return
        }
        heldMessageCount += 1
        inFlight[key] = InFlight(messages: [message], attemptCount: 0, partition: partition, trace: trace)
        enqueueEvent(of: key, isEdit: isEdit, partition: partition)
    }

    func item(_ key: WorkKey, _ origin: WorkItem<Answer>.Origin, _ attemptCount: Int) -> WorkItem<Answer> {
        var item = WorkItem(
            environment: key.environment, subject: key.subject, origin: origin, attemptCount: attemptCount)
        item.trace = inFlight[key]?.trace
        return item
    }

    /// - Parameter isEdit: Whether one of the events of the key that are to be decided is an edit.
    mutating func enqueueEvent(of key: WorkKey, isEdit: Bool, partition: TopicPartition) {
        var item = item(key, .event, 0)
        item.isEdit = isEdit
        enqueue(Item(item: item, partition: partition))
    }

    mutating func enqueueRetry(of key: WorkKey, attemptCount: Int, partition: TopicPartition) {
        enqueue(Item(item: item(key, .retry, attemptCount), partition: partition))
    }

    // MARK: Room

    /// How many more keys may be taken.
    private var room: Int { limits.heldMax - inFlight.count }

    /// How many more messages may be taken. The calls of an environment that go fast are waited for; those of one that
    /// is slow by `turnMax` are not: its further keys are put aside, and others' are behind them.
    func roomForMessages(now: ContinuousClock.Instant) -> Int {
        let slowBefore = now - limits.turnMax
        // What is gathered may become calls too. Answers that wait for somebody's lock take no room from others.
        let gathered = queues.filter { gathersUntil($0.key, now: now) != nil }
        let counts = calls.counts.merging(gathered.mapValues(\.count), uniquingKeysWith: +)
        let all = counts.values.reduce(0, +)
        let fast = counts.filter { !calls.isSlow($0.key, since: slowBefore) }
        let least = fast.values.map { limits.heldMax(beside: all - $0) - $0 }.min()
        return min(room, limits.heldMessagesMax - heldMessageCount, least ?? limits.heldMax(beside: all))
    }

    // MARK: Parked keys

    /// Which parked keys are to be taken now; `nil`: it is not time to look for them.
    mutating func dueRequest(now: ContinuousClock.Instant) -> DueRequest? {
        let isBackAgain = letBackEndsBeCalled(now: now)
        filled.formUnion(returns.environments.filter { !isRunningLow($0) })
        let idle = idle(now: now)
        guard now >= nextDue || isBackAgain || !idle.isEmpty else { return nil }
        nextDue = now + limits.dueInterval
        guard room > 0, !assignment.isEmpty else { return nil }
        returns.prune(now: now)
        let hastened = Set(idle).intersection(returns.environments)
        filled.subtract(hastened)
        let share = min(room / max(1, dueEnvironmentCount), limits.heldMax(beside: calls.count))
        let most = max(1, isBesideNews(now: now) ? min(share, Self.besideNewsMax) : share)
        return DueRequest(
            countMax: most, roomMax: room, exceptions: dueExceptions(most, now: now),
            hastened: Dictionary(uniqueKeysWithValues: hastened.map { ($0, room(in: $0, now: now).left) }))
    }

    /// While messages come, what has gathered is worked off in small steps: they wait for one of them. Where calls are
    /// made the calls set the pace.
    private func isBesideNews(now: ContinuousClock.Instant) -> Bool {
        calls.count == 0 && newsAt.map { now - $0 < .seconds(1) } ?? false
    }

    private static var besideNewsMax: Int { 128 }

    /// So many keys of an environment came back before their time, of those it had room for.
    mutating func hastened(_ environment: EnvironmentID, count: Int, of countMax: Int) {
        // There are no more of them.
        if count < countMax { returns.forget(environment) }
    }

    /// Parked keys that were taken.
    ///
    /// - Parameter environments: Those that have parked keys of the group, dead ones too.
    mutating func due(_ keys: [ParkedKeys.Due], of request: DueRequest, parkedIn environments: Set<EnvironmentID>) {
        parkedEnvironments = environments
        var counts: [EnvironmentID: Int] = [:]
        for due in keys {
            let key = WorkKey(environment: due.environment, subject: due.subject)
            counts[due.environment, default: 0] += 1
            if inFlight[key] != nil { continue }
            inFlight[key] = InFlight(
                attemptCount: due.attemptCount, partition: due.partition, trace: due.trace)
            enqueueRetry(of: key, attemptCount: due.attemptCount, partition: due.partition)
        }
        dueEnvironmentCount = counts.count
        moreDue = Set(counts.filter { $0.value >= request.exceptions[$0.key] ?? request.countMax }.keys)
        // Where calls are made they set the pace; keys that need none are worked off round by round.
        if calls.count == 0, moreDue.contains(where: { request.exceptions[$0] == nil }) {
            nextDue -= limits.dueInterval
        }
    }

    /// A decision has parked keys that are due at once.
    mutating func parkedDueKeys(in environment: EnvironmentID, now: ContinuousClock.Instant) {
        parkedEnvironments?.insert(environment)
        nextDue = min(nextDue, now)
    }

    /// Ends the times that back ends asked to be left alone for.
    ///
    /// - Returns: Whether one was over: what waits for that comes back at once.
    private mutating func letBackEndsBeCalled(now: ContinuousClock.Instant) -> Bool {
        var isAny = false
        for environment in breakers.filter({ $0.value.leftAloneUntil.map { $0 <= now } ?? false }).keys {
            breakers[environment]?.goOn(now: now)
            isAny = true
        }
        return isAny
    }

    /// When messages are no longer waited for: parked keys may be due.
    var dueNext: ContinuousClock.Instant {
        breakers.values.compactMap(\.leftAloneUntil).reduce(nextDue) { min($0, $1) }
    }

    /// Environments whose back end is faster than it was planned for and has nothing to do, or soon will have, with
    /// calls that wait for room; and those whose back end comes back, with half of the room that it has, and more that
    /// waits.
    private func idle(now: ContinuousClock.Instant) -> [EnvironmentID] {
        let idle = returns.environments.filter { environment in
            guard breakers[environment]?.isClosed ?? true else { return false }
            let left = room(in: environment, now: now).left
            let isLow = filled.contains(environment) && isRunningLow(environment)
            return calls.isIdle(environment) && left > 0 || isLow && left >= limits.inFlightMax
        }
        let more = returning.filter { environment in
            moreDue.contains(environment) && !idle.contains(environment) && !isSetAside(environment, now: now)
                && 2 * room(in: environment, now: now).left > breakers[environment]?.callsMax ?? 0
        }
        return idle + more
    }

    /// Whether fewer calls wait than may be under way: these are over before others are taken up and decided, so that
    /// places would be free meanwhile. Nothing is gathered by then.
    ///
    /// It counts once for each time that more of them waited: keys that find no room for another reason, such as a rate
    /// of their person's, would else be taken up and put aside again with every round.
    private func isRunningLow(_ environment: EnvironmentID) -> Bool {
        calls.count(of: environment) < 2 * limits.inFlightMax
    }

    /// Environments whose back end is called again, by few calls at a time.
    private var returning: [EnvironmentID] {
        breakers.filter { $0.value.isClosed && $0.value.callsMax != nil }.map(\.key)
    }

    /// How many keys are taken of environments that have not room for as many, whose back end is away, or that are set
    /// aside.
    private func dueExceptions(_ most: Int, now: ContinuousClock.Instant) -> [EnvironmentID: Int] {
        var counts: [EnvironmentID: Int] = [:]
        for environment in Set(calls.environments).union(returning) {
            let left = room(in: environment, now: now).left
            if left < most { counts[environment] = left }
        }
        for (environment, breaker) in breakers where !breaker.isClosed {
            // Some of them may need no call.
            counts[environment] = breaker.mayProbe(now: now) ? min(8, most) : 0
        }
        for environment in setAside.keys where isSetAside(environment, now: now) { counts[environment] = 0 }
        return counts
    }
}
