import Essentials
import Kafka
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// What a worker does with its consumer, its connection and its handler.
extension Worker {
    // MARK: Taking

    mutating func take(_ countMax: Int, _ waitMax: Duration, isPaused: Bool) throws {
        if isPaused {
            if !self.isPaused { try? pause() }
            // Paused partitions deliver nothing; what was on its way is kept, and looked at later.
            taken += try consumer.nextBatch(countMax: max(countMax, 1), waitMax: waitMax)
            return
        }
        guard countMax > 0 else {
            wakeup.wait(atMost: waitMax)
            wakeup.drain()
            return
        }
        try resume()
        if taken.isEmpty {
            taken = try consumer.nextBatch(countMax: countMax, waitMax: waitMax)
            metrics.consumed.increment(by: taken.count)
        }
        for refusal in consumer.takeRefusals() { logger.error("a broker refuses", metadata: ["reason": "\(refusal)"]) }
        for line in consumer.takeLogs() { logger.debug("\(line.facility): \(line.message)") }
        try followAssignment()
        if !taken.isEmpty { try admitTaken() }
    }

    mutating func pause() throws {
        // Also when one partition cannot be paused: the others are, and are resumed later.
        isPaused = true
        try consumer.pauseAll()
    }

    private mutating func resume() throws {
        guard isPaused else { return }
        try consumer.resumeAll()
        isPaused = false
    }

    /// What is missing is asked for without waiting for a message: there may be none left.
    private mutating func followAssignment() throws {
        let takenAway = reader.takenAwayCount
        defer { metrics.takenAway.increment(by: reader.takenAwayCount - takenAway) }
        try reader.follow(&consumer, &connection)
    }

    /// When it fails, the same messages are admitted again by the next round: what it did so far does no harm twice.
    private mutating func admitTaken() throws {
        let admitted = try reader.admit(taken, consumer: &consumer, connection: &connection)
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
        schedule { scheduler in
            for event in admitted.events {
                let key = WorkKey(environment: event.environment, subject: event.subject)
                scheduler.received(
                    event.message.receipt, of: key, at: event.position, isEdit: event.isEdit,
                    from: event.message.topicPartition, trace: event.trace, now: .now)
            }
        }
        consumer.finish(admitted.dropped)
        taken = []
    }

    mutating func takeDue(_ request: DueRequest) throws {
        let assignment = consumer.assignment
        guard !assignment.isEmpty else { return }
        for (environment, countMax) in request.hastened {
            let count = try ParkedKeys.hasten(
                group: group, environment: environment, partitions: assignment, countMax: countMax, on: &connection)
            schedule { $0.hastened(environment, count: count, of: countMax) }
        }
        let (due, environments) = try ParkedKeys.takeDue(
            request, group: group, partitions: assignment, lease: limits.dueLease, on: &connection)
        schedule { $0.due(due, of: request, parkedIn: environments) }
    }

    // MARK: Deciding

    /// Decides items of one environment and commits what was decided, in one transaction.
    mutating func decide(_ items: [ScheduledItem<H.Answer>], in environment: EnvironmentID) throws {
        do {
            var batch = WriteBatch(environment: environment)
            let begun = items.map { $0.item.inSpanOfItsOwn() }
            let inputs = begun.map(\.item)
            for (index, item) in inputs.enumerated() { batch.trace(item.trace, decision: index) }
            let decided = try handler.decide(inputs, in: environment, batch: &batch, on: &connection)
            let problem = decided.contains(where: \.isCall) ? try findCaller(of: environment) : nil
            let prepared = zip(decided, inputs).map { prepare($0, of: $1, in: environment) }
            let plan = schedule { $0.plan(prepared, problem: problem, now: .now) }
            plan.write(to: &batch, group: group)
            let outcome = try batch.commit(on: &connection)
            let positions = plan.positions(of: batch, after: outcome)
            for (index, begun) in begun.enumerated() {
                guard let span = begun.span else { continue }
                let outcome = plan.outcome(of: index, missed: outcome.missed)
                SpanRecorder.process.end(span, begun.item.work(of: group, outcome: outcome))
            }
            metrics.parked.increment(by: plan.parkings.count)
            let parksDueKeys = batch.parksDueKeys
            schedule {
                $0.committed(plan, missed: outcome.missed, positions: positions, now: .now)
                if parksDueKeys { $0.parkedDueKeys(in: environment, now: .now) }
            }
        } catch let error as PostgresError where error.isDataError {
            schedule { $0.refused(error.message) }
        } catch let error as PostgresError where error.isLocked {
            schedule { $0.locked("\(error)", now: .now, random: .random(in: 0..<1)) }
        }
    }

    /// A decision to call with how the call is made. Without a caller it is taken back, and nothing is made of it.
    private func prepare(
        _ disposition: Disposition<H.Call>, of item: WorkItem<H.Answer>, in environment: EnvironmentID
    ) -> Disposition<PreparedCall<H>> {
        let make = callers[environment]?.make
        return disposition.map { call in
            PreparedCall(
                call: call, kind: handler.kind(of: call), unmade: handler.unmade(call),
                make: make, trace: item.trace)
        }
    }

    // MARK: Calling

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
        let rates = try handler.rates(on: &connection, for: environment).times(shareOfPartitions)
        schedule { $0.setRates(rates, of: environment, now: .now) }
    }

    /// Sets the rates anew of calls that wait for them: a person may have changed them since; and all when partitions
    /// came or went, since the worker's part is another then.
    mutating func renewRates() throws {
        let (assignment, now) = (consumer.assignment, ContinuousClock.now)
        let isShareNew = assignment != ratedAssignment
        guard isShareNew || now >= nextRates else { return }
        let waiting = schedule { scheduler in
            scheduler.calls.environments.filter { scheduler.calls.count(of: $0) > 0 }
        }
        for environment in isShareNew ? Array(callers.keys) : waiting { try setRates(of: environment) }
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

    // MARK: Logging

    func log(_ note: WorkNote) {
        switch note {
        case .backendAway(let environment, let reason):
            logger.warning(
                "the back end is away, its keys wait",
                metadata: ["environment": "\(environment)", "reason": "\(reason)"])
        case .leftAlone(let environment, let reason, let asked):
            logger.warning(
                "the back end asks to be left alone, its keys wait",
                metadata: ["environment": "\(environment)", "reason": "\(reason)", "asked": "\(asked)"])
        case .backAgain(let environment):
            logger.notice("the back end is there again", metadata: ["environment": "\(environment)"])
        case .keyWaitsForAPerson(let key, let reason):
            logger.error(
                "a key waits for a person",
                metadata: [
                    "environment": "\(key.environment)", "key": "\(key.subject)", "reason": "\(reason)",
                ])
        case .locked(let environment, let reason):
            logger.warning(
                "an environment is locked by somebody, its keys wait",
                metadata: ["environment": "\(environment)", "reason": "\(reason)"])
        case .unlocked(let environment):
            logger.notice("an environment is no longer locked", metadata: ["environment": "\(environment)"])
        }
    }
}
