import Kafka
import Model

/// The writes of decisions, and the steps that follow their commit.
extension WorkScheduler {
    /// Returns the writes of the current batch. Rolls back decisions whose calls cannot be made now: the settings
    /// prevent it, the circuit is not closed, the back end requested a pause, or no slot is free. Keys without a call
    /// are not affected.
    ///
    /// - Parameters:
    ///   - dispositions: The handler's decision of each item.
    ///   - problem: The reason why calls of the environment are impossible.
    mutating func plan(
        _ dispositions: [Disposition<Call>], problem: String? = nil, now: ContinuousClock.Instant
    ) -> WorkPlan<Call> {
        var plan = WorkPlan(items: deciding, dispositions: dispositions)
        let withheld = withhold(&plan, problem: problem, now: now)
        plan.withheld = Set(withheld.keys)
        for (index, item) in deciding.enumerated() {
            if let denial = withheld[index] {
                plan.deferrals.append(deferral(item, denial, decision: deciding.count + index))
                continue
            }
            switch dispositions[index] {
            case .finished where item.item.isEdit && mayHaveDeferredKeys(item.item.environment):
                // Other keys may be finished without loading them. If one is deferred meanwhile, it stays so.
                plan.released.append((item.item.subject.description, index))
            case .finished: break
            case .call, .reprocess: break
            case .deferred(let reason, let after, let cause):
                plan.deferrals.append(deferral(item, reason, after, cause, decision: index, now: now))
            case .deadLettered(let reason):
                plan.deferrals.append(deferral(item, reason, nil, .planned, decision: index, now: now))
            }
        }
        return plan
    }

    /// Takes the steps that follow the commit of a plan.
    ///
    /// - Parameters:
    ///   - missed: Decisions with a version conflict: they are retried.
    ///   - positions: Known positions of the items' own objects, as expected or written by the decision.
    mutating func committed(
        _ plan: WorkPlan<Call>, missed: Set<Int>, positions: [Int: Int64] = [:], now: ContinuousClock.Instant
    ) {
        deciding = []
        for (index, position) in positions where !missed.contains(index) {
            decisionHistory.record(position, of: plan.items[index].key, now: now)
        }
        if !plan.deferrals.isEmpty, let environment = plan.items.first?.item.environment {
            hasDeferredKeys(in: environment, now: now)
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

    /// Keys were deferred without a decision.
    mutating func deferred(now: ContinuousClock.Instant) {
        let items = deciding
        deciding = []
        if let environment = items.first?.item.environment { hasDeferredKeys(in: environment, now: now) }
        for item in items {
            let key = item.key
            if probes[key.environment] == key {
                breakers[key.environment]?.releaseProbe(now: now)
                probes[key.environment] = nil
            }
            release(key)
        }
    }

    /// PostgreSQL rejected a value of the batch. The batch is halved until the bad key is alone and is dead-lettered.
    mutating func rejected(_ reason: String) {
        let items = deciding
        deciding = []
        if items.count == 1 {
            rejection = (items[0], "PostgreSQL rejected it: \(reason)")
        } else {
            let half = items.count / 2
            batchHalves += [Array(items[half...]), Array(items[..<half])]
        }
    }

    /// Takes the step of one item after the commit.
    private mutating func follow(_ next: Disposition<Call>, _ item: Item, now: ContinuousClock.Instant) {
        let (key, environment) = (item.key, item.item.environment)
        var breaker = breakers[environment, default: limits.circuit]
        let isAnswer = item.item.isAnswer && item.wasCalled
        var isOpening = false
        switch next {
        case .call(let call, let startBefore):
            queue(call, for: key, startBefore: startBefore, now: now)
            return
        case .deferred(let reason, _, .backendUnavailable):
            outageReasons[environment] = reason
            if breaker.recordFailure(of: key.subject, now: now) {
                logEvents.append(.backendUnavailable(environment, reason: reason))
                isOpening = true
            }
        case .deferred(let reason, _, .retryAfter(let requestedDelay)):
            outageReasons[environment] = reason
            if breaker.backOff(for: min(requestedDelay, limits.retryAfterMax), now: now) {
                logEvents.append(.backoffRequested(environment, reason: reason, retryAfter: requestedDelay))
                isOpening = true
            }
        case .finished, .reprocess, .deadLettered, .deferred:
            if isAnswer, breaker.recordSuccess(inFlight[key]?.kind ?? .read, now: now) {
                outageReasons[environment] = nil
                logEvents.append(.backendRecovered(environment))
            } else if probes[environment] == key {
                breaker.releaseProbe(now: now)
            }
        }
        if probes[environment] == key { probes[environment] = nil }
        breakers[environment] = breaker
        calls.limit(environment, to: breaker.callsMax)
        if isOpening { withdraw(environment, now: now) }
        if case .reprocess = next { reprocess(key) } else { release(key) }
    }

    /// Decides whether a key is deferred or dead-lettered: without `after`, or at the last attempt.
    ///
    /// An unavailable system counts in full only while other calls of the same kind succeed. Otherwise a key uses up at
    /// most half of its attempts, which lengthen its backoff but never dead-letter it.
    mutating func deferral(
        _ item: Item, _ reason: String, _ after: Duration?, _ cause: DeferralCause, decision: Int,
        now: ContinuousClock.Instant
    ) -> DeferredKeys.Deferral {
        let before = item.item.attemptCount
        let kind = inFlight[item.key]?.kind ?? .read
        let breaker = breakers[item.item.environment, default: limits.circuit]
        let (count, wait): (Int, Duration) =
            switch cause {
            case .planned: (before, after ?? .zero)
            // The part beyond the requested pause is the key's own wait.
            case .retryAfter(let requestedDelay) where after ?? .zero <= requestedDelay:
                (before, min(after ?? .zero, limits.retryAfterMax))
            case .retryAfter: (before, after ?? .zero)
            case .attempt: (before + 1, after ?? .zero)
            case .backendUnavailable where breaker.hasRecentSuccess(for: kind, now: now): (before + 1, after ?? .zero)
            case .backendUnavailable: (max(before, min(before + 1, limits.attemptsMax / 2)), after ?? .zero)
            }
        let isDead = after == nil || count >= limits.attemptsMax
        if isDead { logEvents.append(.keyDeadLettered(item.key, reason: reason)) }
        return DeferredKeys.Deferral(
            subject: item.item.subject, partition: item.partition, reason: reason, isDead: isDead, isCircuit: false,
            attemptCount: count, wait: wait, decision: decision, trace: item.item.trace)
    }

    /// Nothing was tried: no attempt counts.
    func deferral(_ item: Item, _ denial: CallDenial, decision: Int) -> DeferredKeys.Deferral {
        DeferredKeys.Deferral(
            subject: item.item.subject, partition: item.partition, reason: denial.reason, isDead: false,
            isCircuit: denial.isCircuit, attemptCount: item.item.attemptCount, wait: denial.wait,
            decision: decision, trace: item.item.trace)
    }

    /// Releases a key and finishes its messages. A key with a newer event is re-queued.
    private mutating func release(_ key: WorkKey) {
        guard var entry = inFlight.removeValue(forKey: key) else { return }
        guard entry.isDirty else {
            heldMessageCount -= entry.messages.count
            finished += entry.messages
            return
        }
        let isEdited = entry.isEdited
        (entry.isDirty, entry.isEdited, entry.isCalled) = (false, false, false)
        (entry.trace, entry.nextTrace) = (entry.nextTrace, nil)
        entry.attemptCount = 0
        inFlight[key] = entry
        enqueueEvent(of: key, isEdit: isEdited, partition: entry.partition)
    }

    /// Re-queues a key in flight; it is decided from the then current state.
    mutating func reprocess(_ key: WorkKey) {
        guard let entry = inFlight[key] else { return }
        inFlight[key]?.isCalled = false
        enqueue(Item(item: item(key, .retry, entry.attemptCount), partition: entry.partition))
    }
}
