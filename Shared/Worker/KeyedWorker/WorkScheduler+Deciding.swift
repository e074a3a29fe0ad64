import Kafka
import Model

/// What becomes of it: what is written of decisions, and what follows once it is written.
extension WorkScheduler {
    /// Says what is written of the batch that is being decided. Takes decisions back whose calls cannot be made now: as
    /// things are set up, because the back end is away or asked to be left alone, or because its calls have no room.
    /// Keys that need no call go on.
    ///
    /// - Parameters:
    ///   - dispositions: What a handler decided of each item.
    ///   - problem: Why the environment's calls cannot be made at all.
    mutating func plan(
        _ dispositions: [Disposition<Call>], problem: String? = nil, now: ContinuousClock.Instant
    ) -> WorkPlan<Call> {
        var plan = WorkPlan(items: deciding, dispositions: dispositions)
        let withheld = withhold(&plan, problem: problem, now: now)
        plan.withheld = Set(withheld.keys)
        for (index, item) in deciding.enumerated() {
            if let wait = withheld[index] {
                plan.parkings.append(parking(item, wait, decision: deciding.count + index))
                continue
            }
            switch dispositions[index] {
            case .finished where mayHaveParked(item.item.environment):
                plan.released.append((item.item.subject.description, index))
            case .finished: break
            case .call, .again: break
            case .park(let reason, let after, let cause):
                plan.parkings.append(parking(item, reason, after, cause, decision: index, now: now))
            case .dead(let reason):
                plan.parkings.append(parking(item, reason, nil, .planned, decision: index, now: now))
            }
        }
        return plan
    }

    /// The plan is written.
    ///
    /// - Parameters:
    ///   - missed: Decisions whose guards did not hold: they are decided again.
    ///   - positions: Of the objects that the items are about, where they are known: what was decided from, or written.
    mutating func committed(
        _ plan: WorkPlan<Call>, missed: Set<Int>, positions: [Int: Int64] = [:], now: ContinuousClock.Instant
    ) {
        deciding = []
        for (index, position) in positions where !missed.contains(index) {
            decidedPositions.note(position, of: plan.items[index].key, now: now)
        }
        if !plan.parkings.isEmpty, let environment = plan.items.first?.item.environment {
            parkedEnvironments?.insert(environment)
        }
        if let environment = plan.items.first?.item.environment {
            unlocked(environment)
            decidedAt[environment] = now
        }
        for (index, item) in plan.items.enumerated() {
            if missed.contains(index), !plan.withheld.contains(index) {
                enqueue(item)
            } else {
                follow(plan.dispositions[index], item, now: now)
            }
        }
    }

    /// Keys were put down without a decision.
    mutating func parked(now: ContinuousClock.Instant) {
        let items = deciding
        deciding = []
        if let environment = items.first?.item.environment { parkedEnvironments?.insert(environment) }
        for item in items {
            let key = item.key
            if probes[key.environment] == key {
                breakers[key.environment]?.probeWasNotMade(now: now)
                probes[key.environment] = nil
            }
            release(key)
        }
    }

    /// PostgreSQL refused a value of the batch: it is halved until the one bad key is alone, and parked dead.
    mutating func refused(_ reason: String) {
        let items = deciding
        deciding = []
        if items.count == 1 {
            refusal = (items[0], "PostgreSQL refused it: \(reason)")
        } else {
            let half = items.count / 2
            parts += [Array(items[half...]), Array(items[..<half])]
        }
    }

    /// Does what comes after the writes.
    private mutating func follow(_ next: Disposition<Call>, _ item: Item, now: ContinuousClock.Instant) {
        let (key, environment) = (item.key, item.item.environment)
        var breaker = breakers[environment, default: limits.circuit]
        let isAnswer = item.item.isAnswer && item.wasCalled
        var isClosing = false
        switch next {
        case .call(let call, let startBefore):
            queue(call, for: key, startBefore: startBefore, now: now)
            return
        case .park(let reason, _, .backendAway):
            if breaker.wasAway(for: key.subject, now: now) {
                notes.append(.backendAway(environment, reason: reason))
                isClosing = true
            }
        case .park(let reason, _, .askedToWait(let asked)):
            if breaker.askedToWait(min(asked, limits.askedWaitMax), now: now) {
                notes.append(.leftAlone(environment, reason: reason, asked: asked))
                isClosing = true
            }
        case .finished, .again, .dead, .park:
            if isAnswer, breaker.answered(inFlight[key]?.kind ?? .read, now: now) {
                notes.append(.backAgain(environment))
            } else if probes[environment] == key {
                breaker.probeWasNotMade(now: now)
            }
        }
        if probes[environment] == key { probes[environment] = nil }
        breakers[environment] = breaker
        calls.bound(environment, to: breaker.callsMax)
        if isClosing { withdraw(environment, now: now) }
        if case .again = next { decideAgain(key) } else { release(key) }
    }

    /// A call that found the other system away counts in full only while others of its kind are answered. While nobody
    /// is, a key uses up half of its attempts at most, which make its waits longer: it does not end dead of that.
    mutating func parking(
        _ item: Item, _ reason: String, _ after: Duration?, _ cause: ParkCause, decision: Int,
        now: ContinuousClock.Instant
    ) -> ParkedKeys.Parking {
        let before = item.item.attemptCount
        let kind = inFlight[item.key]?.kind ?? .read
        let breaker = breakers[item.item.environment, default: limits.circuit]
        let (count, wait): (Int, Duration) =
            switch cause {
            case .planned: (before, after ?? .zero)
            // Longer than what was asked for is the key's own wait.
            case .askedToWait(let asked) where after ?? .zero <= asked:
                (before, min(after ?? .zero, limits.askedWaitMax))
            case .askedToWait: (before, after ?? .zero)
            case .attempt: (before + 1, after ?? .zero)
            case .backendAway where breaker.isThere(for: kind, now: now): (before + 1, after ?? .zero)
            case .backendAway: (max(before, min(before + 1, limits.attemptsMax / 2)), after ?? .zero)
            }
        let isDead = after == nil || count >= limits.attemptsMax
        if isDead { notes.append(.keyWaitsForAPerson(item.key, reason: reason)) }
        return ParkedKeys.Parking(
            subject: item.item.subject, partition: item.partition, reason: reason, isDead: isDead, isCircuit: false,
            attemptCount: count, wait: wait, decision: decision, trace: item.item.trace)
    }

    /// Nothing was tried, so no attempt is counted.
    private func parking(_ item: Item, _ withheld: Withheld, decision: Int) -> ParkedKeys.Parking {
        ParkedKeys.Parking(
            subject: item.item.subject, partition: item.partition, reason: withheld.reason, isDead: false,
            isCircuit: withheld.isCircuit, attemptCount: item.item.attemptCount, wait: withheld.wait,
            decision: decision, trace: item.item.trace)
    }

    /// Lets go of a key: its messages are finished. One with a newer event is decided again.
    private mutating func release(_ key: WorkKey) {
        guard var entry = inFlight.removeValue(forKey: key) else { return }
        guard entry.isDirty else {
            heldMessageCount -= entry.messages.count
            finished += entry.messages
            return
        }
        let isEdited = entry.isEdited
        (entry.isDirty, entry.isEdited, entry.isCalled) = (false, false, false)
        (entry.trace, entry.newsTrace) = (entry.newsTrace, nil)
        entry.attemptCount = 0
        inFlight[key] = entry
        enqueueEvent(of: key, isEdit: isEdited, partition: entry.partition)
    }

    /// A key in flight is decided from what PostgreSQL has by now.
    mutating func decideAgain(_ key: WorkKey) {
        guard let entry = inFlight[key] else { return }
        inFlight[key]?.isCalled = false
        enqueueRetry(of: key, attemptCount: entry.attemptCount, partition: entry.partition)
    }
}
