import Kafka
import Logging
import Metrics
import Model
import Postgres
import Realms

/// What becomes of it: a handler decides, one transaction per environment writes what was decided.
extension Worker {
    mutating func decidePending() throws {
        while let environment = queued.first(where: { !waits($0) })?.input.environment {
            if isSetAside(environment) {
                try parkSetAside(environment)
            } else {
                var inputs = queued.filter { $0.input.environment == environment }
                if inputs.count > limits.batchCountMax { inputs.removeLast(inputs.count - limits.batchCountMax) }
                do {
                    try decide(inputs, in: environment)
                    isFree(environment)
                } catch let error as PostgresError where error.isLocked {
                    setAside(environment, error)
                }
            }
            queued.append(contentsOf: missed)
            missed = []
        }
    }

    /// Inputs are no longer queued as soon as what was decided is committed: when others of the same round fail they
    /// are not decided again, with their calls under way.
    private mutating func wereDecided(_ inputs: [Queued], in environment: EnvironmentID) {
        let subjects = Set(inputs.map(\.input.subject))
        queued.removeAll { $0.input.environment == environment && subjects.contains($0.input.subject) }
    }

    /// Decides inputs of one environment and commits what was decided. Refused data is bisected until the one bad key
    /// is alone, and parked dead.
    mutating func decide(_ inputs: [Queued], in environment: EnvironmentID) throws {
        do {
            try decideTogether(inputs, in: environment)
        } catch let error as PostgresError where error.isDataError {
            if inputs.count == 1 {
                try park(inputs[0], in: environment, reason: "PostgreSQL refused it: \(error.message)")
                return
            }
            let half = inputs.count / 2
            try decide(Array(inputs[..<half]), in: environment)
            try decide(Array(inputs[half...]), in: environment)
        }
    }

    mutating func decideTogether(_ inputs: [Queued], in environment: EnvironmentID) throws {
        var batch = WriteBatch(environment: environment)
        var told = inputs.map(\.input)
        for index in told.indices { told[index].canCall = canCall(for: told[index].subject, in: environment) }
        var nexts = try handler.decide(told, in: environment, batch: &batch, on: &connection)
        let withheld = try withholdCalls(&nexts, of: inputs, from: &batch, in: environment)
        var parkings: [ParkedKeys.Parking] = []
        var released: [(key: String, decision: Int)] = []
        for (index, item) in inputs.enumerated() {
            if let wait = withheld[index] {
                // The decision that was taken back misses, its key is parked all the same: under a number of its own.
                parkings.append(parking(item, wait, decision: inputs.count + index))
                continue
            }
            switch nexts[index] {
            case .finished: released.append((item.input.subject.description, index))
            case .call, .again: break
            case .park(let reason, let after, let cause):
                parkings.append(parking(item, reason, after, cause, decision: index))
            case .dead(let reason): parkings.append(parking(item, reason, nil, .planned, decision: index))
            }
        }
        if !parkings.isEmpty { batch.also(ParkedKeys.park(parkings, group: group, environment: environment)) }
        if !released.isEmpty { batch.also(ParkedKeys.release(released, group: group, environment: environment)) }
        let outcome = try batch.commit(on: &connection)
        wereDecided(inputs, in: environment)
        parkedCounter.increment(by: parkings.count)
        for (index, item) in inputs.enumerated() {
            if outcome.missed.contains(index), withheld[index] == nil {
                missed.append(item)
            } else {
                follow(nexts[index], item)
            }
        }
    }

    /// Does what comes after the writes.
    mutating func follow(_ next: Disposition<H.Call>, _ item: Queued) {
        let key = Key(environment: item.input.environment, subject: item.input.subject)
        let environment = key.environment
        var breaker = breakers[environment, default: limits.circuit]
        let isAnswer = item.input.isAnswer && item.wasCalled
        switch next {
        case .call(let call, let startBefore):
            make(call, for: key, startBefore: startBefore)
            return
        case .park(let reason, _, .backendAway):
            if breaker.wasAway(for: key.subject, now: .now) {
                logger.warning(
                    "the back end is away, its keys wait",
                    metadata: ["environment": "\(environment)", "reason": "\(reason)"])
                calls.withdraw(environment)
            }
        case .park(let reason, _, .askedToWait(let asked)):
            if breaker.askedToWait(min(asked, limits.askedWaitMax), now: .now) {
                logger.warning(
                    "the back end asks to be left alone, its keys wait",
                    metadata: ["environment": "\(environment)", "reason": "\(reason)", "asked": "\(asked)"])
                calls.withdraw(environment)
            }
        case .finished, .again, .dead, .park:
            if isAnswer, breaker.answered(inFlight[key]?.kind ?? .read, now: .now) {
                logger.notice("the back end is there again", metadata: ["environment": "\(environment)"])
            } else if probes[environment] == key {
                breaker.probeWasNotMade(now: .now)
            }
        }
        if probes[environment] == key { probes[environment] = nil }
        breakers[environment] = breaker
        calls.bound(environment, to: breaker.callsMax)
        if case .again = next { decideAgain(key) } else { release(key) }
    }

    /// A call that found the other system away counts in full only while others of its kind are answered. While nobody
    /// is, a key uses up half of its attempts at most, which make its waits longer: it does not end dead of that.
    func parking(
        _ item: Queued, _ reason: String, _ after: Duration?, _ cause: ParkCause, decision: Int
    ) -> ParkedKeys.Parking {
        let before = item.input.attemptCount
        let kind = inFlight[Key(environment: item.input.environment, subject: item.input.subject)]?.kind ?? .read
        let breaker = breakers[item.input.environment, default: limits.circuit]
        let (count, wait): (Int, Duration) =
            switch cause {
            case .planned: (before, after ?? .zero)
            // Longer than what was asked for is the key's own wait.
            case .askedToWait(let asked) where after ?? .zero <= asked:
                (before, min(after ?? .zero, limits.askedWaitMax))
            case .askedToWait: (before, after ?? .zero)
            case .attempt: (before + 1, after ?? .zero)
            case .backendAway where breaker.isThere(for: kind, now: .now): (before + 1, after ?? .zero)
            case .backendAway: (max(before, min(before + 1, limits.attemptsMax / 2)), after ?? .zero)
            }
        let isDead = after == nil || count >= limits.attemptsMax
        if isDead {
            logger.error(
                "a key waits for a person",
                metadata: [
                    "environment": "\(item.input.environment)", "key": "\(item.input.subject)", "reason": "\(reason)",
                ])
        }
        return ParkedKeys.Parking(
            subject: item.input.subject, partition: item.partition, reason: reason, isDead: isDead, isCircuit: false,
            attemptCount: count, wait: wait, decision: decision)
    }

    /// Nothing was tried, so no attempt is counted.
    private func parking(_ item: Queued, _ withheld: Withheld, decision: Int) -> ParkedKeys.Parking {
        ParkedKeys.Parking(
            subject: item.input.subject, partition: item.partition, reason: withheld.reason, isDead: false,
            isCircuit: withheld.isCircuit, attemptCount: item.input.attemptCount, wait: withheld.wait,
            decision: decision)
    }

    /// Parks one key dead in a transaction of its own.
    mutating func park(_ item: Queued, in environment: EnvironmentID, reason: String) throws {
        let parking = parking(item, reason, nil, .planned, decision: 0)
        try connection.run(ParkedKeys.park([parking], group: group, environment: environment))
        letGo([item], in: environment)
    }

    /// Lets go of keys that were parked without a decision.
    mutating func letGo(_ items: [Queued], in environment: EnvironmentID) {
        wereDecided(items, in: environment)
        for item in items {
            let key = Key(environment: environment, subject: item.input.subject)
            if probes[environment] == key {
                breakers[environment]?.probeWasNotMade(now: .now)
                probes[environment] = nil
            }
            release(key)
        }
    }

    /// Lets go of a key: its messages are finished. One with a newer event is decided again.
    mutating func release(_ key: Key) {
        guard var entry = inFlight.removeValue(forKey: key) else { return }
        guard entry.isDirty else {
            heldMessageCount -= entry.messages.count
            consumer.finish(entry.messages)
            return
        }
        (entry.isDirty, entry.isCalled) = (false, false)
        entry.attemptCount = 0
        inFlight[key] = entry
        missed.append(
            Queued(
                input: WorkItem(environment: key.environment, subject: key.subject, origin: .event, attemptCount: 0),
                partition: entry.partition))
    }
}
