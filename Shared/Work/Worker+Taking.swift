import Kafka
import Logging
import Metrics
import Model
import Postgres

/// What comes in: answers of calls, messages, parked keys that are due.
extension Worker {
    mutating func takeAnswers(isStopping: Bool) {
        for (key, answer) in calls.takeOutcomes() {
            guard let inFlight = inFlight[key] else { continue }
            guard let known = answer ?? inFlight.unmade else {
                if isStopping { leave(key) } else { callWasNotMade(key) }
                continue
            }
            queued.append(
                Queued(
                    input: WorkItem(
                        environment: key.environment, subject: key.subject, origin: .answer(known),
                        attemptCount: inFlight.attemptCount), partition: inFlight.partition, wasCalled: answer != nil))
        }
    }

    /// Leaves a key to the next worker: its messages are not finished, and its parked row is due again after the lease.
    private mutating func leave(_ key: Key) {
        guard let entry = inFlight.removeValue(forKey: key) else { return }
        heldMessageCount -= entry.messages.count
    }

    /// How many more keys may be taken.
    private var room: Int { limits.heldMax - inFlight.count }

    /// How many more messages may be taken. The calls of an environment that go fast are waited for; those of one that
    /// is slow by `turnMax` are not: its further keys are put aside, and others' are behind them.
    private var roomForMessages: Int {
        let (slowBefore, limits) = (ContinuousClock.now - limits.turnMax, limits)
        let least = calls.read { queue in
            let all = queue.count
            let fast = queue.environments.filter { !queue.isSlow($0, since: slowBefore) }
            return fast.map { limits.heldMax(beside: all - queue.count(of: $0)) - queue.count(of: $0) }.min()
                ?? limits.heldMax(beside: all)
        }
        return min(room, limits.heldMessagesMax - heldMessageCount, least)
    }

    /// Takes messages while there is room; a full worker keeps its place in the group without them.
    mutating func takeMessages() throws {
        let room = roomForMessages
        guard room > 0 else {
            let since = fullSince ?? .now
            fullSince = since
            if !isPaused, ContinuousClock.now - since > .seconds(5) { try pause() }
            if isPaused {
                taken += try consumer.nextBatch(countMax: 1, waitMax: .milliseconds(50))
            } else {
                consumer.wakeup.wait(atMost: .milliseconds(50))
                consumer.wakeup.drain()
            }
            return
        }
        fullSince = nil
        try resume()
        if taken.isEmpty {
            let waitMax = dueNext - ContinuousClock.now
            taken = try consumer.nextBatch(
                countMax: min(room, limits.batchCountMax), waitMax: min(max(waitMax, .zero), .milliseconds(100)))
            consumed.increment(by: taken.count)
        }
        for refusal in consumer.takeRefusals() { logger.error("a broker refuses", metadata: ["reason": "\(refusal)"]) }
        for line in consumer.takeLogs() { logger.debug("\(line.facility): \(line.message)") }
        try followAssignment()
        if !taken.isEmpty { try admitTaken() }
    }

    /// What is missing is asked for without waiting for a message: there may be none left.
    private mutating func followAssignment() throws {
        let takenAway = intake.takenAwayCount
        defer { lostCounter.increment(by: intake.takenAwayCount - takenAway) }
        try intake.follow(&consumer, &connection)
    }

    /// When it fails, the same messages are admitted again by the next round: what it did so far does no harm twice.
    mutating func admitTaken() throws {
        let admitted = try intake.admit(taken, consumer: &consumer, connection: &connection)
        if !admitted.poison.isEmpty {
            for (message, reason) in admitted.poison {
                logger.error(
                    "poison",
                    metadata: ["topic": "\(message.topic)", "offset": "\(message.offset)", "reason": "\(reason)"])
            }
            try connection.run(
                admitted.poison.map { ParkedKeys.poison($0.message, reason: $0.reason, group: group) })
            consumer.finish(admitted.poison.map(\.message))
        }
        for event in admitted.events { hold(event) }
        consumer.finish(admitted.dropped)
        taken = []
    }

    mutating func hold(_ event: Event) {
        let key = Key(environment: event.environment, subject: event.subject)
        heldMessageCount += 1
        if inFlight[key] != nil {
            // Its earlier event, or a call, is under way: the key is decided again afterwards.
            inFlight[key]?.messages.append(event.message)
            inFlight[key]?.isDirty = true
            return
        }
        inFlight[key] = InFlight(messages: [event.message], attemptCount: 0, partition: event.message.topicPartition)
        queued.append(
            Queued(
                input: WorkItem(environment: key.environment, subject: key.subject, origin: .event, attemptCount: 0),
                partition: event.message.topicPartition))
    }

    mutating func takeDue() throws {
        let isBackAgain = letBackEndsBeCalled()
        guard ContinuousClock.now >= nextDue || isBackAgain || !idle.isEmpty else { return }
        nextDue = .now + limits.dueInterval
        let room = room
        let assignment = consumer.assignment
        guard room > 0, !assignment.isEmpty else { return }
        try hasten(assignment)
        let most = max(1, min(room / max(1, dueEnvironmentCount), limits.heldMax(beside: calls.read(\.count))))
        let exceptions = dueExceptions(most)
        let rows = try connection.run(
            ParkedKeys.takeDue(
                group: group, partitions: assignment, lease: limits.dueLease, countMax: most, roomMax: room,
                exceptions: exceptions.map { ($0.key, $0.value) }))
        var counts: [EnvironmentID: Int] = [:]
        defer {
            dueEnvironmentCount = counts.count
            moreDue = Set(counts.filter { $0.value >= exceptions[$0.key] ?? most }.keys)
        }
        for due in try ParkedKeys.due(rows) {
            let key = Key(environment: due.environment, subject: due.subject)
            counts[due.environment, default: 0] += 1
            if inFlight[key] != nil { continue }
            inFlight[key] = InFlight(attemptCount: due.attemptCount, partition: due.partition)
            queued.append(
                Queued(
                    input: WorkItem(
                        environment: key.environment, subject: key.subject, origin: .retry,
                        attemptCount: due.attemptCount), partition: due.partition))
        }
    }

    /// Ends the times that back ends asked to be left alone for.
    ///
    /// - Returns: Whether one was over: what waits for that comes back at once.
    private mutating func letBackEndsBeCalled() -> Bool {
        let now = ContinuousClock.now
        var isAny = false
        for environment in breakers.filter({ $0.value.leftAloneUntil.map { $0 <= now } ?? false }).keys {
            breakers[environment]?.goOn(now: now)
            isAny = true
        }
        return isAny
    }

    /// When messages are no longer waited for: parked keys may be due.
    private var dueNext: ContinuousClock.Instant {
        breakers.values.compactMap(\.leftAloneUntil).reduce(nextDue) { min($0, $1) }
    }

    /// Environments whose back end is faster than it was planned for and has nothing to do, with calls that wait for
    /// room; and those whose back end comes back, with half of the room that it has, and more that waits.
    private var idle: [EnvironmentID] {
        let idle = returns.environments.filter { environment in
            breakers[environment]?.isClosed ?? true && calls.read { $0.isIdle(environment) }
                && room(in: environment).left > 0
        }
        let more = returning.filter { environment in
            moreDue.contains(environment) && !idle.contains(environment) && !isSetAside(environment)
                && 2 * room(in: environment).left > breakers[environment]?.callsMax ?? 0
        }
        return idle + more
    }

    /// Environments whose back end is called again, by few calls at a time.
    private var returning: [EnvironmentID] {
        breakers.filter { $0.value.isClosed && $0.value.callsMax != nil }.map(\.key)
    }

    /// What waits for room comes back at once where there is some.
    private mutating func hasten(_ assignment: Set<TopicPartition>) throws {
        returns.prune(now: .now)
        for environment in Set(idle).intersection(returns.environments) {
            let countMax = room(in: environment).left
            let hastened = try connection.run(
                ParkedKeys.hasten(
                    group: group, environment: environment, partitions: assignment, countMax: countMax))
            // That were all.
            if hastened.affectedCount < countMax { returns.forget(environment) }
        }
    }

    /// How many keys are taken of environments that have not room for as many, whose back end is away, or that are set
    /// aside.
    private func dueExceptions(_ most: Int) -> [EnvironmentID: Int] {
        let now = ContinuousClock.now
        var counts: [EnvironmentID: Int] = [:]
        for environment in Set(calls.read(\.environments)).union(returning) {
            let left = room(in: environment).left
            if left < most { counts[environment] = left }
        }
        for (environment, breaker) in breakers where !breaker.isClosed {
            // Some of them may need no call.
            counts[environment] = breaker.mayProbe(now: now) ? min(8, most) : 0
        }
        for environment in setAside.keys where isSetAside(environment) { counts[environment] = 0 }
        return counts
    }
}
