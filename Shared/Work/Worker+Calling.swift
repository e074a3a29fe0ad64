import Essentials
import Kafka
import Logging
import Metrics
import Model
import Postgres
import Realms

extension EventSubject {
    /// Who takes turns with others: the person whose realm it is in or, in a realm of all, each object for itself.
    var turn: String { realm.email ?? realm.seenEmail ?? id.text }
}

/// The window of calls.
extension Worker {
    /// Why the call that was decided for a key is not made now.
    struct Withheld {
        let reason: String
        let wait: Duration
        /// It comes back when the environment's circuit lets it.
        let isCircuit: Bool
    }

    /// Queues a call whose ledger is written. `decideTogether` has found its environment's caller.
    mutating func make(_ call: H.Call, for key: Key, startBefore: ContinuousClock.Instant) {
        guard let make = callers[key.environment]?.make else { preconditionFailure("the caller is found before") }
        inFlight[key]?.isCalled = true
        inFlight[key]?.unmade = handler.unmade(call)
        inFlight[key]?.kind = handler.kind(of: call)
        calls.add(
            CallWindow.Call(
                key: key, turn: FlowKey(environment: key.environment, person: key.subject.turn),
                startBefore: startBefore
            ) { await make(call) })
    }

    /// Takes decisions out of the batch whose calls cannot be made now: as things are set up, because the back end is
    /// away or asked to be left alone, or because its calls have no room. Keys that need no call go on.
    ///
    /// - Returns: The decisions taken out.
    mutating func withholdCalls(
        _ nexts: inout [Disposition<H.Call>], of items: [Queued], from batch: inout WriteBatch,
        in environment: EnvironmentID
    ) throws -> [Int: Withheld] {
        var indices = nexts.indices.filter { nexts[$0].isCall }
        guard !indices.isEmpty else { return [:] }
        var withheld: [Int: Withheld] = [:]
        if let reason = try findCaller(of: environment) {
            // That it was tried is as good as a probe.
            var breaker = breakers[environment] ?? limits.circuit
            if breaker.admit(now: .now) == .probe {
                probes[environment] = Key(environment: environment, subject: items[indices[0]].input.subject)
            }
            breakers[environment] = breaker
            for index in indices {
                withheld[index] = Withheld(reason: reason, wait: limits.circuit.waitMin, isCircuit: true)
                nexts[index] = .park(reason: reason, after: limits.circuit.waitMin, cause: .backendAway)
            }
        } else {
            // One that has failed before is no good probe.
            indices.sort { items[$0].input.attemptCount < items[$1].input.attemptCount }
            var room = room(in: environment)
            for index in indices {
                guard case .call(_, let startBefore) = nexts[index],
                    let wait = admit(items[index], startBefore, in: environment, &room)
                else { continue }
                withheld[index] = wait
                nexts[index] = .park(reason: wait.reason, after: wait.wait, cause: .planned)
            }
        }
        if !withheld.isEmpty { batch.expect("SELECT realm.miss(\(withheld.keys.map(Int32.init)))") }
        return withheld
    }

    func room(in environment: EnvironmentID) -> AdmissionControl {
        let returning = breakers[environment]?.callsMax.map { callsMax in
            (callsMax, inFlight.count { $0.key.environment == environment && $0.value.isCalled })
        }
        return AdmissionControl(calls, environment, limits, returning: returning)
    }

    /// Whether the environment's circuit lets calls be made for the key.
    func canCall(for subject: EventSubject, in environment: EnvironmentID) -> Bool {
        breakers[environment]?.isClosed ?? true || isProbe(Key(environment: environment, subject: subject))
    }

    private func isProbe(_ key: Key) -> Bool {
        probes[key.environment] == key && breakers[key.environment]?.isHalfOpen == true
    }

    /// - Returns: `nil` when the call may be made.
    private mutating func admit(
        _ item: Queued, _ startBefore: ContinuousClock.Instant, in environment: EnvironmentID,
        _ room: inout AdmissionControl
    ) -> Withheld? {
        let key = Key(environment: environment, subject: item.input.subject)
        let turn = FlowKey(environment: environment, person: key.subject.turn)
        var breaker = breakers[environment] ?? limits.circuit
        defer { breakers[environment] = breaker }
        // The next call of one that is under way; or the probe: its next call, or its writes missed or failed.
        if item.input.isAnswer && breaker.isClosed || isProbe(key) {
            room.take(turn, startBefore: startBefore)
            return nil
        }
        switch breaker.admit(now: .now) {
        case .probe:
            probes[environment] = key
            room.take(turn, startBefore: startBefore)
            return nil
        case .wait:
            let reason =
                if case .leftAlone = breaker.state { "the back end asked to be left alone" } else {
                    "the back end is away"
                }
            return Withheld(reason: reason, wait: .zero, isCircuit: true)
        case .call:
            if room.take(turn, startBefore: startBefore) { return nil }
            let perSecond = room.rates.perSecond ?? Double(limits.inFlightMax)
            let interval = max(1 / perSecond, room.rates.perPersonAndSecond.map { 1 / $0 } ?? 0)
            let wait = returns.wait(for: turn, every: .seconds(interval), now: .now)
            return Withheld(reason: ParkCause.noRoom, wait: wait, isCircuit: false)
        }
    }

    /// Finds how the environment's calls are made: what was found a while ago may have been changed by a person since.
    ///
    /// - Returns: `nil`, or why they cannot be made.
    private mutating func findCaller(of environment: EnvironmentID) throws -> String? {
        let revision = handler.callerRevision(of: environment)
        if let kept = callers[environment], kept.revision == revision,
            ContinuousClock.now - kept.madeAt < limits.callerAgeMax
        {
            return nil
        }
        do {
            callers[environment] = Caller(
                make: try handler.caller(on: &connection, for: environment), madeAt: .now, revision: revision)
            try setRates(of: environment)
            unavailable[environment] = nil
            return nil
        } catch let error as CallerUnavailable {
            if unavailable[environment] != error.reason {
                logger.error(
                    "the back end cannot be called, its keys wait",
                    metadata: ["environment": "\(environment)", "reason": "\(error.reason)"])
            }
            callers[environment] = nil
            unavailable[environment] = error.reason
            return error.reason
        }
    }

    private mutating func setRates(of environment: EnvironmentID) throws {
        calls.setRates(
            try handler.rates(on: &connection, for: environment).times(shareOfPartitions), of: environment)
    }

    /// Sets the rates anew of calls that wait for them: a person may have changed them since; and all when partitions
    /// came or went, since the worker's part is another then.
    mutating func renewRates() throws {
        let (assignment, now) = (consumer.assignment, ContinuousClock.now)
        let isShareNew = assignment != ratedAssignment
        guard isShareNew || now >= nextRates else { return }
        let environments =
            isShareNew
            ? Array(callers.keys) : calls.read { queue in queue.environments.filter { queue.count(of: $0) > 0 } }
        for environment in environments { try setRates(of: environment) }
        ratedAssignment = assignment
        nextRates = now + limits.callerAgeMax
    }

    /// Keys are spread over all partitions: workers that each keep to their part of a rate keep to it together.
    private var shareOfPartitions: Double {
        let assignment = consumer.assignment
        let count = Topics.all.filter { topic in assignment.contains { $0.topic == topic.name } }
            .reduce(0) { $0 + $1.partitions }
        return count == 0 ? 1 : Double(assignment.count) / Double(count)
    }

    /// Begins no more calls.
    func withdrawCalls() {
        for environment in calls.read(\.environments) { calls.withdraw(environment) }
    }

    /// It waited for its call for so long that its lease may be over.
    mutating func callWasNotMade(_ key: Key) {
        if probes[key.environment] == key { breakers[key.environment]?.probeWasNotMade(now: .now) }
        decideAgain(key)
    }

    /// A key in flight is decided from what PostgreSQL has by now.
    mutating func decideAgain(_ key: Key) {
        guard let entry = inFlight[key] else { return }
        inFlight[key]?.isCalled = false
        queued.append(
            Queued(
                input: WorkItem(
                    environment: key.environment, subject: key.subject, origin: .retry, attemptCount: entry.attemptCount
                ),
                partition: entry.partition))
    }
}
