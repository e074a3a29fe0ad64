import Essentials
import Kafka
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// The actions of a worker on its consumer, connection and handler.
extension Worker {
    // MARK: Input

    mutating func take(_ countMax: Int, _ waitMax: Duration, isPaused: Bool) throws {
        if isPaused {
            if !self.isPaused { try? pause() }
            // Paused partitions deliver nothing. Messages that were in transit are kept for later.
            fetchedMessages += try consumer.nextBatch(countMax: max(countMax, 1), waitMax: waitMax)
            return
        }
        guard countMax > 0 else {
            wakeup.wait(atMost: waitMax)
            return
        }
        try resume()
        if fetchedMessages.isEmpty {
            fetchedMessages = try consumer.nextBatch(countMax: countMax, waitMax: waitMax)
            metrics.consumed.increment(by: fetchedMessages.count)
        }
        for refusal in consumer.takeRejections() {
            logger.error("broker rejected the request", metadata: ["reason": "\(refusal)"])
        }
        for line in consumer.takeLogs() { logger.debug("\(line.facility): \(line.message)") }
        try handleAssignmentChanges()
        if !fetchedMessages.isEmpty { try admitFetched() }
    }

    mutating func pause() throws {
        // Also if one partition cannot be paused: the others are, and are resumed later.
        isPaused = true
        try consumer.pauseAll()
    }

    private mutating func resume() throws {
        guard isPaused else { return }
        try consumer.resumeAll()
        isPaused = false
    }

    /// Requests republication without waiting for a message: there may be none left.
    private mutating func handleAssignmentChanges() throws {
        let revokedBefore = reader.revokedCount
        defer { metrics.revoked.increment(by: reader.revokedCount - revokedBefore) }
        try reader.handleAssignmentChanges(&consumer, &connection)
    }

    /// If it fails, the next cycle admits the same messages again: the steps so far are idempotent.
    private mutating func admitFetched() throws {
        let admitted = try reader.admit(fetchedMessages, consumer: &consumer, connection: &connection)
        if !admitted.poison.isEmpty {
            for (message, reason) in admitted.poison {
                logger.error(
                    "unreadable message dead-lettered",
                    metadata: ["topic": "\(message.topic)", "offset": "\(message.offset)", "reason": "\(reason)"])
            }
            try connection.run(
                admitted.poison.map { DeferredKeys.poison($0.message, reason: $0.reason, group: group) })
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
        fetchedMessages = []
    }

    mutating func takeDue(_ request: DueRequest) throws {
        let assignment = consumer.assignment
        guard !assignment.isEmpty else { return }
        for (environment, countMax) in request.expedited {
            let count = try DeferredKeys.expedite(
                group: group, environment: environment, partitions: assignment, countMax: countMax, on: &connection)
            schedule { $0.expedited(environment, count: count, of: countMax) }
        }
        let (due, environments) = try DeferredKeys.takeDue(
            request, group: group, partitions: assignment, lease: limits.dueLease, on: &connection)
        schedule { $0.due(due, of: request, deferredIn: environments) }
    }

    // MARK: Decisions

    /// Decides items of one environment and commits the decisions in one transaction.
    mutating func decide(_ items: [ScheduledItem<H.CallResult>], in environment: EnvironmentID) throws {
        do {
            let items = try findDeferred(items, in: environment)
            var batch = WriteBatch(environment: environment)
            let spans = items.map { $0.item.withOwnSpan() }
            let inputs = spans.map(\.item)
            for (index, item) in inputs.enumerated() { batch.trace(item.trace, decision: index) }
            let decided = try handler.decide(inputs, in: environment, batch: &batch, on: &connection)
            let problem = decided.contains(where: \.isCall) ? try findCaller(of: environment) : nil
            let prepared = zip(decided, inputs).map { prepare($0, of: $1, in: environment) }
            let plan = schedule { $0.plan(prepared, problem: problem, now: .now) }
            plan.write(to: &batch, group: group)
            let outcome = try batch.commit(on: &connection)
            let positions = plan.positions(of: batch, after: outcome)
            for (index, started) in spans.enumerated() {
                guard let span = started.span else { continue }
                let outcome = plan.outcome(of: index, missed: outcome.conflicts)
                SpanRecorder.process.end(span, started.item.spanWork(of: group, outcome: outcome))
            }
            metrics.deferred.increment(by: plan.deferrals.count)
            let defersDueKeys = batch.defersDueKeys
            schedule {
                $0.committed(plan, missed: outcome.conflicts, positions: positions, now: .now)
                if defersDueKeys { $0.deferredDueKeys(in: environment, now: .now) }
            }
        } catch let error as PostgresError where error.isDataError {
            schedule { $0.rejected(error.message) }
        } catch let error as PostgresError where error.isLocked {
            schedule { $0.locked("\(error)", now: .now, random: .random(in: 0..<1)) }
        }
    }

    /// Marks the items whose keys are deferred as edits.
    private mutating func findDeferred(
        _ items: [ScheduledItem<H.CallResult>], in environment: EnvironmentID
    ) throws -> [ScheduledItem<H.CallResult>] {
        let keys = schedule(\.possiblyDeferred)
        if keys.isEmpty { return items }
        guard H.skipsUneditedKeys else { return schedule { $0.decideAsEdits(Set(keys)) } }
        let found = try connection.run(DeferredKeys.deferred(among: keys, group: group, environment: environment))
            .decode(String.self)
        return found.isEmpty ? items : schedule { $0.decideAsEdits(Set(found)) }
    }

    /// Combines a decision to call with the call function. Without one the decision is rolled back.
    private func prepare(
        _ disposition: Disposition<H.Call>, of item: WorkItem<H.CallResult>, in environment: EnvironmentID
    ) -> Disposition<PreparedCall<H>> {
        let make = callers[environment]?.make
        return disposition.map { call in
            PreparedCall(
                call: call, kind: handler.kind(of: call), resultWhenSkipped: handler.resultWhenSkipped(call),
                make: make, trace: item.trace)
        }
    }

    // MARK: Calls

    /// Loads the environment's call function if the cached one is too old: an operator may have changed the settings.
    ///
    /// - Returns: `nil`, or the reason why calls are impossible.
    private mutating func findCaller(of environment: EnvironmentID) throws -> String? {
        let revision = handler.callerRevision(of: environment)
        if let cached = callers[environment], cached.revision == revision,
            ContinuousClock.now - cached.madeAt < limits.callerAgeMax
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
                    "back end cannot be called, deferring keys",
                    metadata: ["environment": "\(environment)", "reason": "\(error.reason)"])
            }
            callers[environment] = nil
            unavailable[environment] = error.reason
            return error.reason
        }
    }

    private mutating func setRates(of environment: EnvironmentID) throws {
        let rates = try handler.rates(on: &connection, for: environment).times(partitionShare)
        schedule { $0.calls.setRates(rates, of: environment, now: .now) }
    }

    /// Reloads the rate limits of environments whose calls wait, since an operator may have changed them; and all of
    /// them after an assignment change, which changes the worker's share.
    mutating func refreshRateLimits() throws {
        let (assignment, now) = (consumer.assignment, ContinuousClock.now)
        let isShareNew = assignment != rateLimitAssignment
        guard isShareNew || now >= nextRateLimitRefresh else { return }
        let waiting = schedule { scheduler in
            scheduler.calls.environments.filter { scheduler.calls.count(of: $0) > 0 }
        }
        for environment in isShareNew ? Array(callers.keys) : waiting { try setRates(of: environment) }
        rateLimitAssignment = assignment
        nextRateLimitRefresh = now + limits.callerAgeMax
    }

    /// The worker's share of a rate limit: keys are spread over all partitions, so the shares add up to the limit.
    private var partitionShare: Double {
        let assignment = consumer.assignment
        let count = Topics.all.filter { topic in assignment.contains { $0.topic == topic.name } }
            .reduce(0) { $0 + $1.partitions }
        return count == 0 ? 1 : Double(assignment.count) / Double(count)
    }

    // MARK: Logging

    func log(_ event: SchedulerLogEvent) {
        switch event {
        case .backendUnavailable(let environment, let reason):
            logger.warning(
                "back end unavailable, deferring keys",
                metadata: ["environment": "\(environment)", "reason": "\(reason)"])
        case .backoffRequested(let environment, let reason, let retryAfter):
            logger.warning(
                "back end requested a pause, deferring keys",
                metadata: ["environment": "\(environment)", "reason": "\(reason)", "retryAfter": "\(retryAfter)"])
        case .backendRecovered(let environment):
            logger.notice("back end recovered", metadata: ["environment": "\(environment)"])
        case .keyDeadLettered(let key, let reason):
            logger.error(
                "key dead-lettered",
                metadata: [
                    "environment": "\(key.environment)", "key": "\(key.subject)", "reason": "\(reason)",
                ])
        case .locked(let environment, let reason, let isLong):
            logger.log(
                level: isLong ? .warning : .info, isLong ? "environment locked, deferring keys" : "environment locked",
                metadata: ["environment": "\(environment)", "reason": "\(reason)"])
        case .unlocked(let environment):
            logger.info("environment unlocked", metadata: ["environment": "\(environment)"])
        }
    }
}
