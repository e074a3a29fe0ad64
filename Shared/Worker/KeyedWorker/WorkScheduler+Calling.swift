import Essentials
import Model

extension EventSubject {
    /// Who takes turns with others: the person whose realm it is in or, in a realm of all, each object for itself.
    var turn: String { realm.email ?? realm.seenEmail ?? id.text }
}

extension WorkKey {
    var flow: FlowKey { FlowKey(environment: environment, person: subject.turn) }
}

/// The window of calls: which are made, which wait, and which are not made now.
extension WorkScheduler {
    /// Why the call that was decided for a key is not made now.
    struct Withheld {
        let reason: String
        let wait: Duration
        /// It comes back when the environment's circuit lets it.
        let isCircuit: Bool
    }

    // MARK: Admission

    /// - Returns: The decisions that are taken back.
    mutating func withhold(
        _ plan: inout WorkPlan<Call>, problem: String?, now: ContinuousClock.Instant
    ) -> [Int: Withheld] {
        var indices = plan.dispositions.indices.filter { plan.dispositions[$0].isCall }
        guard let first = indices.first else { return [:] }
        let environment = plan.items[first].item.environment
        var withheld: [Int: Withheld] = [:]
        if let problem {
            // That it was tried is as good as a probe.
            var breaker = breakers[environment] ?? limits.circuit
            if breaker.admit(now: now) == .probe { probes[environment] = plan.items[first].key }
            breakers[environment] = breaker
            for index in indices {
                withheld[index] = Withheld(reason: problem, wait: limits.circuit.waitMin, isCircuit: true)
                plan.dispositions[index] = .park(reason: problem, after: limits.circuit.waitMin, cause: .backendAway)
            }
        } else {
            // One that has failed before is no good probe.
            indices.sort { plan.items[$0].item.attemptCount < plan.items[$1].item.attemptCount }
            var room = room(in: environment, now: now)
            for index in indices {
                guard case .call(_, let startBefore) = plan.dispositions[index],
                    let wait = admit(plan.items[index], startBefore, &room, now: now)
                else { continue }
                withheld[index] = wait
                plan.dispositions[index] = .park(reason: wait.reason, after: wait.wait, cause: .planned)
            }
        }
        return withheld
    }

    func room(in environment: EnvironmentID, now: ContinuousClock.Instant) -> AdmissionControl {
        let returning = breakers[environment]?.callsMax.map { callsMax in
            (callsMax, inFlight.count { $0.key.environment == environment && $0.value.isCalled })
        }
        return AdmissionControl(calls, environment, limits, returning: returning, now: now)
    }

    /// Whether the environment's circuit lets calls be made for the key.
    func canCall(for key: WorkKey) -> Bool { breakers[key.environment]?.isClosed ?? true || isProbe(key) }

    private func isProbe(_ key: WorkKey) -> Bool {
        probes[key.environment] == key && breakers[key.environment]?.isHalfOpen == true
    }

    /// - Returns: `nil` when the call may be made.
    private mutating func admit(
        _ item: Item, _ startBefore: ContinuousClock.Instant, _ room: inout AdmissionControl,
        now: ContinuousClock.Instant
    ) -> Withheld? {
        let (key, environment) = (item.key, item.item.environment)
        var breaker = breakers[environment] ?? limits.circuit
        defer { breakers[environment] = breaker }
        // The next call of one that is under way; or the probe: its next call, or its writes missed or failed.
        if item.item.isAnswer && breaker.isClosed || isProbe(key) {
            room.take(key.flow, startBefore: startBefore)
            return nil
        }
        switch breaker.admit(now: now) {
        case .probe:
            probes[environment] = key
            room.take(key.flow, startBefore: startBefore)
            return nil
        case .wait:
            let reason =
                if case .leftAlone = breaker.state { "the back end asked to be left alone" } else {
                    "the back end is away"
                }
            return Withheld(reason: reason, wait: .zero, isCircuit: true)
        case .call:
            if room.take(key.flow, startBefore: startBefore) { return nil }
            let perSecond = room.rates.perSecond ?? Double(limits.inFlightMax)
            let interval = max(1 / perSecond, room.rates.perPersonAndSecond.map { 1 / $0 } ?? 0)
            let wait = returns.wait(for: key.flow, every: .seconds(interval), now: now)
            return Withheld(reason: ParkCause.noRoom, wait: wait, isCircuit: false)
        }
    }

    // MARK: Calls

    /// How fast an environment may be called.
    mutating func setRates(_ rates: CallRates, of environment: EnvironmentID, now: ContinuousClock.Instant) {
        calls.setRates(rates, of: environment, now: now)
    }

    /// Queues a call whose decision is written.
    mutating func queue(
        _ call: Call, for key: WorkKey, startBefore: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        inFlight[key]?.isCalled = true
        inFlight[key]?.unmade = call.unmade
        inFlight[key]?.kind = call.kind
        calls.add(
            QueuedCall(key: key, call: call, startBefore: startBefore), for: key.flow, startBefore: startBefore,
            now: now)
    }

    /// Starts what has a place, and whose time has come.
    mutating func startCalls(now: ContinuousClock.Instant) -> [StartedCall<Call>] {
        var started: [StartedCall<Call>] = []
        while let call = startCall(now: now) { started.append(call) }
        return started
    }

    private mutating func startCall(now: ContinuousClock.Instant) -> StartedCall<Call>? {
        let next = calls.next(now: now)?.call
        for expired in calls.takeExpired() { heard(nil, of: expired.key, now: now) }
        return next.map { StartedCall(key: $0.key, call: $0.call, startBefore: $0.startBefore, begunAt: now) }
    }

    /// A call is over. It takes the next one along, so the window stays full however long the worker is busy.
    ///
    /// - Parameter answer: `nil` when it was not made: its time was over.
    /// - Returns: The call that takes its place.
    mutating func ended(
        _ call: StartedCall<Call>, answer: Answer?, now: ContinuousClock.Instant
    ) -> StartedCall<Call>? {
        let keepsPlace = limits.answersKeepPlaces && answer != nil && inFlight[call.key] != nil
        if !keepsPlace { calls.ended(in: call.key.environment, begunAt: call.begunAt, now: now) }
        heard(answer, of: call.key, placeSince: keepsPlace ? call.begunAt : nil, now: now)
        return startCall(now: now)
    }

    /// What came of a key's call; `nil`: it was not made.
    private mutating func heard(
        _ answer: Answer?, of key: WorkKey, placeSince: ContinuousClock.Instant? = nil, now: ContinuousClock.Instant
    ) {
        guard let entry = inFlight[key] else { return }
        guard let known = answer ?? entry.unmade else {
            if isStopping { leave(key) } else { callWasNotMade(key, now: now) }
            return
        }
        enqueue(
            Item(
                item: item(key, .answer(known), entry.attemptCount), partition: entry.partition,
                wasCalled: answer != nil, placeSince: placeSince))
    }

    /// Leaves a key to the next worker: its messages are not finished, and its parked row is due again after the lease.
    private mutating func leave(_ key: WorkKey) {
        guard let entry = inFlight.removeValue(forKey: key) else { return }
        heldMessageCount -= entry.messages.count
    }

    /// It waited for its call for so long that its lease may be over.
    private mutating func callWasNotMade(_ key: WorkKey, now: ContinuousClock.Instant) {
        if probes[key.environment] == key { breakers[key.environment]?.probeWasNotMade(now: now) }
        decideAgain(key)
    }

    /// Takes back all calls of an environment that are not made yet.
    mutating func withdraw(_ environment: EnvironmentID, now: ContinuousClock.Instant) {
        for call in calls.withdraw(environment) { heard(nil, of: call.key, now: now) }
    }

    /// Begins no more calls.
    mutating func withdrawCalls(now: ContinuousClock.Instant) {
        for environment in calls.environments { withdraw(environment, now: now) }
    }
}
