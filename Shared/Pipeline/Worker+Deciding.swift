import Kafka
import Logging
import Metrics
import Model
import Postgres
import Realms

/// What becomes of it: a handler decides, one transaction per environment writes what was decided.
extension Worker {
    mutating func decidePending() throws {
        while !pending.isEmpty {
            let environment = pending[0].input.environment
            var inputs = pending.filter { $0.input.environment == environment }
            if inputs.count > limits.batchCountMax { inputs.removeLast(inputs.count - limits.batchCountMax) }
            try decide(inputs, in: environment)
            pending.append(contentsOf: missed)
            missed = []
        }
    }

    /// Inputs are no longer pending as soon as what was decided is committed: when others of the same round fail they
    /// are not decided again, with their calls under way.
    private mutating func wereDecided(_ inputs: [Pending], in environment: EnvironmentID) {
        let subjects = Set(inputs.map(\.input.subject))
        pending.removeAll { $0.input.environment == environment && subjects.contains($0.input.subject) }
    }

    /// Decides inputs of one environment and commits what was decided. Refused data is bisected until the one bad key
    /// is alone, and parked dead.
    mutating func decide(_ inputs: [Pending], in environment: EnvironmentID) throws {
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

    mutating func decideTogether(_ inputs: [Pending], in environment: EnvironmentID) throws {
        let (admitted, waiting) = admit(inputs, in: environment)
        var batch = WriteBatch(environment: environment)
        var nexts: [Next<H.Call>] = []
        if !admitted.isEmpty {
            nexts = try handler.decide(admitted.map(\.input), in: environment, batch: &batch, on: &connection)
        }
        let withdrawn = try withdrawCalls(&nexts, from: &batch, in: environment)
        var parkings: [ParkedKeys.Parking] = []
        var released: [(key: String, decision: Int)] = []
        for (index, item) in admitted.enumerated() {
            switch nexts[index] {
            case .finished: released.append((item.input.subject.description, index))
            case .call: break
            // Below, with those that wait for the back end.
            case .park where withdrawn.contains(index): break
            case .park(let reason, let after, let cause):
                parkings.append(parking(item, reason, after, cause, decision: index))
            case .dead(let reason): parkings.append(parking(item, reason, nil, .planned, decision: index))
            }
        }
        let called = withdrawn.map { (admitted[$0], limits.circuit.waitMin) }
        for (offset, (item, wait)) in (waiting + called).enumerated() {
            // A decision that was withdrawn misses, its key is parked all the same: under a number of its own.
            parkings.append(parkingOfCircuit(item, wait, in: environment, decision: admitted.count + offset))
        }
        if !parkings.isEmpty { batch.also(ParkedKeys.park(parkings, group: group, environment: environment)) }
        if !released.isEmpty { batch.also(ParkedKeys.release(released, group: group, environment: environment)) }
        let outcome = try batch.commit(on: &connection)
        wereDecided(inputs, in: environment)
        parkedCounter.increment(by: parkings.count)
        for (index, item) in admitted.enumerated() {
            if outcome.missed.contains(index), !withdrawn.contains(index) {
                missed.append(item)
            } else {
                follow(nexts[index], item)
            }
        }
        for (item, _) in waiting { release(Key(environment: environment, subject: item.input.subject)) }
    }

    /// Parts the inputs that may need a call now from those that wait until the back end is there again.
    mutating func admit(
        _ inputs: [Pending], in environment: EnvironmentID
    ) -> (admitted: [Pending], waiting: [(Pending, Duration)]) {
        var breaker = breakers[environment] ?? limits.circuit
        var admitted: [Pending] = []
        var waiting: [(Pending, Duration)] = []
        for item in inputs {
            let key = Key(environment: environment, subject: item.input.subject)
            if case .answer = item.input.origin {
                admitted.append(item)
                continue
            }
            // It is the probe already, and comes again because its writes missed or failed.
            if probes[environment] == key, !breaker.isClosed, !breaker.mayProbe(now: .now) {
                admitted.append(item)
                continue
            }
            switch breaker.admit(now: .now) {
            case .call: admitted.append(item)
            case .probe:
                probes[environment] = key
                admitted.append(item)
            case .wait(let wait): waiting.append((item, max(wait, .milliseconds(100))))
            }
        }
        breakers[environment] = breaker
        return (admitted, waiting)
    }

    /// Does what comes after the writes.
    mutating func follow(_ next: Next<H.Call>, _ item: Pending) {
        let key = Key(environment: item.input.environment, subject: item.input.subject)
        var breaker = breakers[key.environment, default: limits.circuit]
        switch next {
        case .call(let call, let startBefore):
            make(call, for: key, startBefore: startBefore)
            return
        case .park(_, _, .backendAway):
            if breaker.wasAway(now: .now) {
                logger.warning("the back end is away, its keys wait", metadata: ["environment": "\(key.environment)"])
            }
        case .finished, .dead, .park:
            if case .answer = item.input.origin, breaker.answered() {
                logger.notice("the back end is there again", metadata: ["environment": "\(key.environment)"])
                // When this fails they come back by themselves, each at its time.
                _ = try? connection.run(ParkedKeys.closeCircuit(group: group, environment: key.environment))
            } else if probes[key.environment] == key {
                breaker.probeWasNotMade(now: .now)
            }
        }
        if probes[key.environment] == key { probes[key.environment] = nil }
        breakers[key.environment] = breaker
        release(key)
    }

    func parking(
        _ item: Pending, _ reason: String, _ after: Duration?, _ cause: ParkCause, decision: Int
    ) -> ParkedKeys.Parking {
        let count = item.input.attemptCount + (cause == .planned ? 0 : 1)
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
            attemptCount: count, wait: after ?? .zero, decision: decision)
    }

    /// Nothing was tried, so no attempt is counted.
    private func parkingOfCircuit(
        _ item: Pending, _ wait: Duration, in environment: EnvironmentID, decision: Int
    ) -> ParkedKeys.Parking {
        ParkedKeys.Parking(
            subject: item.input.subject, partition: item.partition,
            reason: unavailable[environment] ?? "the back end is away", isDead: false, isCircuit: true,
            attemptCount: item.input.attemptCount, wait: wait, decision: decision)
    }

    /// Parks one key dead in a transaction of its own.
    mutating func park(_ item: Pending, in environment: EnvironmentID, reason: String) throws {
        let parking = parking(item, reason, nil, .planned, decision: 0)
        try connection.run(ParkedKeys.park([parking], group: group, environment: environment))
        wereDecided([item], in: environment)
        let key = Key(environment: environment, subject: item.input.subject)
        if probes[environment] == key {
            breakers[environment]?.probeWasNotMade(now: .now)
            probes[environment] = nil
        }
        release(key)
    }

    /// Lets go of a key: its messages are finished. One with a newer event is decided again.
    mutating func release(_ key: Key) {
        guard var entry = held.removeValue(forKey: key) else { return }
        guard entry.isOverdue else {
            heldMessageCount -= entry.messages.count
            consumer.finish(entry.messages)
            return
        }
        entry.isOverdue = false
        entry.attemptCount = 0
        held[key] = entry
        missed.append(
            Pending(
                input: Input(environment: key.environment, subject: key.subject, origin: .event, attemptCount: 0),
                partition: entry.partition))
    }
}
