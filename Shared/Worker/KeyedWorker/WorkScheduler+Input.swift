import Essentials
import Kafka
import Model

/// Input of the scheduler: messages and due deferred keys.
extension WorkScheduler {
    /// Receives a message of a key.
    ///
    /// - Parameters:
    ///   - position: The object's position in the message. If a decision already covers it, the message is finished
    ///     together with its key, which is done, deferred or still in flight.
    ///   - isEdit: Whether a device or an integration made the change.
    ///   - trace: The trace of the change.
    mutating func received(
        _ message: Message, of key: WorkKey, at position: Int64, isEdit: Bool, from partition: TopicPartition,
        trace: TraceContext? = nil, now: ContinuousClock.Instant
    ) {
        let isCovered = decisionHistory.covers(position, of: key, now: now)
        // A service's own writes return as events too.
        if !isCovered, isEdit { lastEventAt = now }
        if inFlight[key] != nil {
            // An earlier event or a call of the key is in flight: a newer event re-queues the key afterwards.
            heldMessageCount += 1
            inFlight[key]?.messages.append(message)
            if !isCovered {
                inFlight[key]?.isDirty = true
                inFlight[key]?.nextTrace = trace
                // An item that is still queued will be decided from a state that includes this event's change.
                if inFlight[key]?.isCalled == false { inFlight[key]?.trace = trace }
                if isEdit { inFlight[key]?.isEdited = true }
            }
            return
        }
        guard !isCovered else {
            finished.append(message)
            return
        }
        heldMessageCount += 1
        inFlight[key] = InFlight(messages: [message], attemptCount: 0, partition: partition, trace: trace)
        enqueueEvent(of: key, isEdit: isEdit, partition: partition)
    }

    func item(_ key: WorkKey, _ origin: WorkItem<CallResult>.Origin, _ attemptCount: Int) -> WorkItem<CallResult> {
        var item = WorkItem(
            environment: key.environment, subject: key.subject, origin: origin, attemptCount: attemptCount)
        item.trace = inFlight[key]?.trace
        return item
    }

    /// - Parameter isEdit: Whether one of the key's undecided events is an edit.
    mutating func enqueueEvent(of key: WorkKey, isEdit: Bool, partition: TopicPartition) {
        var item = item(key, .event, 0)
        item.isEdit = isEdit
        enqueue(Item(item: item, partition: partition))
    }

    // MARK: Capacity

    /// Number of further keys that may be taken.
    private var room: Int { limits.keysInFlightMax - inFlight.count }

    /// Number of further messages that may be taken. Messages wait for environments with fast calls. They do not wait
    /// for one that is slower than `queueWaitMax`: its further keys are deferred, since other environments' messages
    /// are behind them.
    func roomForMessages(now: ContinuousClock.Instant) -> Int {
        let slowBefore = now - limits.queueWaitMax
        // Collected items may become calls too. Results that wait for a lock take no capacity from other environments.
        let gathered = queues.filter { gathersUntil($0.key, now: now) != nil }
        let counts = calls.counts.merging(gathered.mapValues(\.count), uniquingKeysWith: +)
        let all = counts.values.reduce(0, +)
        let fast = counts.filter { !calls.isSlow($0.key, since: slowBefore) }
        let least = fast.values.map { limits.keysInFlightMax(beside: all - $0) - $0 }.min()
        return min(room, limits.messagesInFlightMax - heldMessageCount, least ?? limits.keysInFlightMax(beside: all))
    }

    // MARK: Deferred keys

    /// Returns which due keys to take now; `nil`: no scan is due.
    mutating func dueRequest(now: ContinuousClock.Instant) -> DueRequest? {
        let hasBackoffEnded = endBackoffs(now: now)
        saturated.formUnion(slotSchedule.environments.filter { !isRunningLow($0) })
        let idle = idle(now: now)
        guard now >= nextDue || hasBackoffEnded || !idle.isEmpty else { return nil }
        (scannedAt, nextDue) = (now, now + limits.dueInterval)
        guard room > 0, !assignment.isEmpty else { return nil }
        slotSchedule.prune(now: now)
        let expedited = Set(idle).intersection(slotSchedule.environments)
        saturated.subtract(expedited)
        let share = min(room / max(1, dueEnvironmentCount), limits.keysInFlightMax(beside: calls.count))
        let most = max(1, isReceivingEvents(now: now) ? min(share, interleavedMax) : share)
        return DueRequest(
            countMax: most, roomMax: room, exceptions: dueLimits(most, now: now),
            expedited: Dictionary(uniqueKeysWithValues: expedited.map { ($0, room(in: $0, now: now).left) }))
    }

    /// While messages arrive, a backlog is processed in small steps, since each step delays them. If calls are made,
    /// they limit the rate.
    private func isReceivingEvents(now: ContinuousClock.Instant) -> Bool {
        calls.count == 0 && lastEventAt.map { now - $0 < .seconds(1) } ?? false
    }

    /// Calls limit the rate by themselves, also if none is in flight at the moment.
    private var interleavedMax: Int { makesCalls ? 128 : 16 }

    /// Reports how many keys of an environment, of at most `countMax`, became due early.
    mutating func expedited(_ environment: EnvironmentID, count: Int, of countMax: Int) {
        // No further keys wait.
        if count < countMax { slotSchedule.remove(environment) }
    }

    /// Receives due keys.
    ///
    /// - Parameter environments: Environments with deferred keys of the group, including dead-lettered ones.
    mutating func due(_ keys: [DeferredKeys.Due], of request: DueRequest, deferredIn environments: Set<EnvironmentID>) {
        environmentsWithDeferredKeys = environments
        let interval = environments.isEmpty ? max(Self.idleDueInterval, limits.dueInterval) : limits.dueInterval
        nextDue = scannedAt + interval
        var counts: [EnvironmentID: Int] = [:]
        for due in keys {
            let key = WorkKey(environment: due.environment, subject: due.subject)
            counts[due.environment, default: 0] += 1
            if inFlight[key] != nil { continue }
            inFlight[key] = InFlight(
                attemptCount: due.attemptCount, partition: due.partition, trace: due.trace)
            reprocess(key)
        }
        dueEnvironmentCount = counts.count
        moreDue = Set(counts.filter { $0.value >= request.exceptions[$0.key] ?? request.countMax }.keys)
        // If calls are made, they limit the rate. Keys without calls are taken in every cycle.
        if calls.count == 0, moreDue.contains(where: { request.exceptions[$0] == nil }) {
            nextDue = scannedAt
        }
    }

    /// The interval of scans while the group has no deferred keys.
    private static var idleDueInterval: Duration { .seconds(1) }

    /// A decision has deferred keys that are due immediately.
    mutating func deferredDueKeys(in environment: EnvironmentID, now: ContinuousClock.Instant) {
        environmentsWithDeferredKeys?.insert(environment)
        nextDue = min(nextDue, now)
    }

    /// The environment has deferred keys.
    mutating func hasDeferredKeys(in environment: EnvironmentID, now: ContinuousClock.Instant) {
        environmentsWithDeferredKeys?.insert(environment)
        nextDue = min(nextDue, now + limits.dueInterval)
    }

    /// Ends requested pauses that are over.
    ///
    /// - Returns: Whether one ended: the keys that wait for it become due.
    private mutating func endBackoffs(now: ContinuousClock.Instant) -> Bool {
        var isAny = false
        for environment in breakers.filter({ $0.value.backoffEnd.map { $0 <= now } ?? false }).keys {
            breakers[environment]?.endBackoff(now: now)
            isAny = true
        }
        return isAny
    }

    /// The latest time until which the worker waits for messages: then deferred keys may be due.
    var dueNext: ContinuousClock.Instant {
        breakers.values.compactMap(\.backoffEnd).reduce(nextDue) { min($0, $1) }
    }

    /// Environments with free slots, or soon with free slots, whose deferred calls wait for a slot. Also environments
    /// whose back end recovers, if half of their capacity is free and more keys are due.
    private func idle(now: ContinuousClock.Instant) -> [EnvironmentID] {
        let idle = slotSchedule.environments.filter { environment in
            guard breakers[environment]?.isClosed ?? true else { return false }
            let left = room(in: environment, now: now).left
            let isLow = saturated.contains(environment) && isRunningLow(environment)
            return calls.isIdle(environment) && left > 0 || isLow && left >= limits.inFlightMax
        }
        let more = recovering.filter { environment in
            moreDue.contains(environment) && !idle.contains(environment) && !isLocked(environment, now: now)
                && 2 * room(in: environment, now: now).left > breakers[environment]?.callsMax ?? 0
        }
        return idle + more
    }

    /// Whether fewer calls wait than the number of slots. They may end before further keys are taken and decided, which
    /// would leave slots free. At that point no items are collected.
    ///
    /// Each fill level counts only once. Keys deferred for another reason, such as their person's rate limit, would
    /// otherwise be taken and deferred again in every cycle.
    private func isRunningLow(_ environment: EnvironmentID) -> Bool {
        calls.count(of: environment) < 2 * limits.inFlightMax
    }

    /// Environments whose back end recovers: the number of calls is still limited.
    private var recovering: [EnvironmentID] {
        breakers.filter { $0.value.isClosed && $0.value.callsMax != nil }.map(\.key)
    }

    /// Numbers of keys to take from environments with little capacity, with an unavailable back end, or with a lock.
    private func dueLimits(_ most: Int, now: ContinuousClock.Instant) -> [EnvironmentID: Int] {
        var counts: [EnvironmentID: Int] = [:]
        for environment in Set(calls.environments).union(recovering) {
            let left = room(in: environment, now: now).left
            if left < most { counts[environment] = left }
        }
        for (environment, breaker) in breakers where !breaker.isClosed {
            // Some of them may need no call.
            counts[environment] = breaker.mayProbe(now: now) ? min(8, most) : 0
        }
        for environment in lockedEnvironments.keys where isLocked(environment, now: now) { counts[environment] = 0 }
        return counts
    }
}
