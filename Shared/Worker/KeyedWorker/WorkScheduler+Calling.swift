import Essentials
import Model

extension EventSubject {
    /// The unit of fair queueing: the person of the realm or, in a shared realm, the object itself.
    var flow: String { realm.email ?? realm.seenEmail ?? id.text }
}

extension WorkKey {
    var flow: FlowKey { FlowKey(environment: environment, person: subject.flow) }
}

/// Admission and scheduling of calls.
extension WorkScheduler {
    /// The reason why a decided call is not made now.
    struct CallDenial {
        let reason: String
        let wait: Duration
        /// The key is retried when the environment's circuit closes.
        let isCircuit: Bool
    }

    // MARK: Admission

    /// - Returns: The decisions that are rolled back.
    mutating func withhold(
        _ plan: inout WorkPlan<Call>, problem: String?, now: ContinuousClock.Instant
    ) -> [Int: CallDenial] {
        var indices = plan.dispositions.indices.filter { plan.dispositions[$0].isCall }
        guard let first = indices.first else { return [:] }
        let environment = plan.items[first].item.environment
        var withheld: [Int: CallDenial] = [:]
        if let problem {
            // The failure to find a caller counts as a probe.
            var breaker = breakers[environment] ?? limits.circuit
            if breaker.admit(now: now) == .probe { probes[environment] = plan.items[first].key }
            breakers[environment] = breaker
            for index in indices {
                withheld[index] = CallDenial(reason: problem, wait: limits.circuit.waitMin, isCircuit: true)
                plan.dispositions[index] = .deferred(
                    reason: problem, after: limits.circuit.waitMin, cause: .backendUnavailable)
            }
        } else {
            // A key that has failed before is a poor probe.
            indices.sort { plan.items[$0].item.attemptCount < plan.items[$1].item.attemptCount }
            var room = room(in: environment, now: now)
            for index in indices {
                guard case .call(_, let startBefore) = plan.dispositions[index],
                    let wait = admit(plan.items[index], startBefore, &room, now: now)
                else { continue }
                withheld[index] = wait
                plan.dispositions[index] = .deferred(reason: wait.reason, after: wait.wait, cause: .planned)
            }
        }
        return withheld
    }

    func room(in environment: EnvironmentID, now: ContinuousClock.Instant) -> AdmissionControl {
        let recovering = breakers[environment]?.callsMax.map { callsMax in
            (callsMax, inFlight.count { $0.key.environment == environment && $0.value.isCalled })
        }
        return AdmissionControl(calls, environment, limits, recovering: recovering, now: now)
    }

    /// Whether the environment's circuit admits calls of the key.
    func canCall(for key: WorkKey) -> Bool { breakers[key.environment]?.isClosed ?? true || isProbe(key) }

    private func isProbe(_ key: WorkKey) -> Bool {
        probes[key.environment] == key && breakers[key.environment]?.isHalfOpen == true
    }

    /// - Returns: `nil` if the call is admitted.
    private mutating func admit(
        _ item: Item, _ startBefore: ContinuousClock.Instant, _ room: inout AdmissionControl,
        now: ContinuousClock.Instant
    ) -> CallDenial? {
        let (key, environment) = (item.key, item.item.environment)
        var breaker = breakers[environment] ?? limits.circuit
        defer { breakers[environment] = breaker }
        // The next call of a key in flight, or of the probe: a further step, or a retry after a failed commit.
        if item.item.isAnswer && breaker.isClosed || isProbe(key) {
            room.admit(key.flow, startBefore: startBefore)
            return nil
        }
        switch breaker.admit(now: now) {
        case .probe:
            probes[environment] = key
            room.admit(key.flow, startBefore: startBefore)
            return nil
        case .wait(let wait):
            return denial(breaker.state, wait, because: outageReasons[environment])
        case .call:
            if room.admit(key.flow, startBefore: startBefore) { return nil }
            let perSecond = room.rates.perSecond ?? Double(limits.inFlightMax)
            let interval = max(1 / perSecond, room.rates.perPersonAndSecond.map { 1 / $0 } ?? 0)
            let wait = slotSchedule.wait(for: key.flow, every: .seconds(interval), now: now)
            return CallDenial(reason: DeferralCause.noFreeSlot, wait: wait, isCircuit: false)
        }
    }

    /// Returns the denial of a circuit that is not closed. The key is due at the next attempt, whose time operators
    /// see.
    private func denial(_ state: CircuitBreaker.State, _ wait: Duration, because cause: String?) -> CallDenial {
        let cause = cause.map { ": \($0)" } ?? ""
        // Due a little earlier, so that the scan at that time finds it; no scan takes it before.
        let due = max(.zero, wait - .milliseconds(250))
        return switch state {
        case .backingOff: CallDenial(reason: "the back end requested a pause\(cause)", wait: due, isCircuit: true)
        case .open: CallDenial(reason: "the back end is unavailable\(cause)", wait: due, isCircuit: true)
        // The probe in flight may close the circuit at any time.
        case .halfOpen, .closed:
            CallDenial(reason: "the back end is unavailable\(cause)", wait: .zero, isCircuit: true)
        }
    }

    // MARK: Calls

    /// Queues a call whose decision is committed.
    mutating func queue(
        _ call: Call, for key: WorkKey, startBefore: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        makesCalls = true
        inFlight[key]?.isCalled = true
        inFlight[key]?.resultWhenSkipped = call.resultWhenSkipped
        inFlight[key]?.kind = call.kind
        calls.add(
            QueuedCall(key: key, call: call, startBefore: startBefore), for: key.flow, startBefore: startBefore,
            now: now)
    }

    /// Starts waiting calls while slots are free and rate limits allow it.
    mutating func startCalls(now: ContinuousClock.Instant) -> [StartedCall<Call>] {
        var started: [StartedCall<Call>] = []
        while let call = startCall(now: now) { started.append(call) }
        return started
    }

    private mutating func startCall(now: ContinuousClock.Instant) -> StartedCall<Call>? {
        let next = calls.next(now: now)?.call
        for expired in calls.takeExpired() { receiveResult(nil, of: expired.key, now: now) }
        return next.map { StartedCall(key: $0.key, call: $0.call, startBefore: $0.startBefore, startedAt: now) }
    }

    /// Records the end of a call and starts the next one, which keeps slots in use while the worker's thread is busy.
    ///
    /// - Parameter answer: `nil` if the call was not made because its deadline had passed.
    /// - Returns: The call that takes over the slot.
    mutating func ended(
        _ call: StartedCall<Call>, answer: CallResult?, now: ContinuousClock.Instant
    ) -> StartedCall<Call>? {
        let keepsSlot = limits.resultsHoldSlots && answer != nil && inFlight[call.key] != nil
        if !keepsSlot { calls.ended(in: call.key.environment, startedAt: call.startedAt, now: now) }
        receiveResult(answer, of: call.key, slotSince: keepsSlot ? call.startedAt : nil, now: now)
        return startCall(now: now)
    }

    /// Enqueues the result of a key's call; `nil`: it was not made.
    private mutating func receiveResult(
        _ answer: CallResult?, of key: WorkKey, slotSince: ContinuousClock.Instant? = nil, now: ContinuousClock.Instant
    ) {
        guard let entry = inFlight[key] else { return }
        guard let result = answer ?? entry.resultWhenSkipped else {
            if isStopping { return abandon(key) }
            // The call waited until its deadline, so the key's lease may have ended.
            if probes[key.environment] == key { breakers[key.environment]?.releaseProbe(now: now) }
            return reprocess(key)
        }
        enqueue(
            Item(
                item: item(key, .result(result), entry.attemptCount), partition: entry.partition,
                wasCalled: answer != nil, slotSince: slotSince))
    }

    /// Leaves a key to the next worker: its messages stay unfinished, and its deferred row becomes due after the lease.
    private mutating func abandon(_ key: WorkKey) {
        guard let entry = inFlight.removeValue(forKey: key) else { return }
        heldMessageCount -= entry.messages.count
    }

    /// Withdraws all waiting calls of an environment.
    mutating func withdraw(_ environment: EnvironmentID, now: ContinuousClock.Instant) {
        for call in calls.withdraw(environment) { receiveResult(nil, of: call.key, now: now) }
    }
}
