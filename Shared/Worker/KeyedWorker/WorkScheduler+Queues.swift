import Model

/// Queues of items per environment, with round robin and batching.
extension WorkScheduler {
    private static var gatheringMax: Duration { .milliseconds(20) }
    private static var gatheringCountMax: Int { 128 }

    mutating func enqueue(_ item: Item) {
        let environment = item.item.environment
        if queues[environment, default: []].isEmpty { roundRobin.append(environment) }
        queues[environment, default: []].append(item)
    }

    /// Re-queues the current batch, ahead of newer items.
    mutating func requeueBatch() {
        var items = deciding + batchHalves.joined()
        if let rejection { items.append(rejection.item) }
        (deciding, batchHalves, rejection) = ([], [], nil)
        for (environment, items) in Dictionary(grouping: items, by: { $0.item.environment }) {
            if queues[environment, default: []].isEmpty { roundRobin.insert(environment, at: 0) }
            queues[environment, default: []].insert(contentsOf: items, at: 0)
        }
    }

    /// Whether an environment has items that can be decided or deferred now.
    func hasWork(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        guard gathersUntil(environment, now: now) == nil, let queue = queues[environment] else { return false }
        guard isLocked(environment, now: now) else { return !queue.isEmpty }
        return queue.contains { !$0.item.isAnswer } && !isWaiting(environment, now: now)
    }

    /// The next items of one environment, by round robin.
    mutating func nextBatch(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if let rejection {
            deciding = [rejection.item]
            self.rejection = nil
            let deferral = deferral(rejection.item, rejection.reason, nil, .planned, decision: 0, now: now)
            return .deferKeys([deferral], in: rejection.item.item.environment)
        }
        if let part = batchHalves.popLast() { return decide(part, now: now) }
        guard let index = roundRobin.firstIndex(where: { hasWork($0, now: now) }) else { return nil }
        let environment = roundRobin.remove(at: index)
        var queue = queues.removeValue(forKey: environment) ?? []
        let isLocked = isLocked(environment, now: now)
        // If a locked environment has work, all its items except results are deferred.
        let taken = isLocked ? queue.filter { !$0.item.isAnswer } : Array(queue.prefix(limits.batchCountMax))
        queue = isLocked ? queue.filter(\.item.isAnswer) : Array(queue.dropFirst(taken.count))
        if !queue.isEmpty {
            queues[environment] = queue
            roundRobin.append(environment)
        }
        guard !isLocked else {
            takeUp(taken, now: now)
            return .deferKeys(deferrals(locked: taken, in: environment, now: now), in: environment)
        }
        return decide(taken, now: now)
    }

    /// Releases the slots of results that have arrived. Results that arrive later in this cycle release theirs
    /// when they are decided.
    mutating func freeSlots(now: ContinuousClock.Instant) {
        guard limits.resultsHoldSlots else { return }
        for environment in queues.keys { queues[environment] = queues[environment]?.map { freed($0, now: now) } }
    }

    /// The item without its slot.
    private mutating func freed(_ item: Item, now: ContinuousClock.Instant) -> Item {
        guard let since = item.slotSince else { return item }
        var item = item
        calls.ended(in: item.item.environment, startedAt: since, now: now)
        item.slotSince = nil
        return item
    }

    private mutating func takeUp(_ items: [Item], now: ContinuousClock.Instant) {
        deciding = items.map { freed($0, now: now) }
    }

    private mutating func decide(_ items: [Item], now: ContinuousClock.Instant) -> WorkAction<Message, Call> {
        takeUp(items, now: now)
        for index in deciding.indices {
            let key = deciding[index].key
            deciding[index].item.canCall = canCall(for: key)
            deciding[index].item.trace = inFlight[key]?.trace
        }
        return .decide(deciding, in: items[0].item.environment)
    }

    /// The current batch's keys that may be deferred although no event was an edit.
    var possiblyDeferred: [String] {
        guard let environment = deciding.first?.item.environment, mayHaveDeferredKeys(environment) else { return [] }
        return deciding.filter { !$0.item.isEdit }.map(\.item.subject.description)
    }

    /// Marks items of the current batch as edits whose keys are deferred: the deferred event may be one.
    ///
    /// - Returns: The batch.
    mutating func decideAsEdits(_ keys: Set<String>) -> [Item] {
        for index in deciding.indices where keys.contains(deciding[index].item.subject.description) {
            deciding[index].item.isEdit = true
        }
        return deciding
    }

    /// Whether the environment may have deferred keys; `true` if unknown.
    func mayHaveDeferredKeys(_ environment: EnvironmentID) -> Bool {
        environmentsWithDeferredKeys?.contains(environment) != false
    }

    // MARK: Batching

    /// End of the time in which an environment's items are collected for one transaction. Calls that wait keep all
    /// slots busy meanwhile, so no call is delayed.
    func gathersUntil(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let last = decidedAt[environment], last + Self.gatheringMax > now,
            !isStopping, !limits.resultsHoldSlots, queues[environment]?.count ?? 0 < Self.gatheringCountMax,
            calls.count(of: environment) >= 2 * limits.inFlightMax
        else { return nil }
        return last + Self.gatheringMax
    }

    /// Maximum wait while items are collected.
    func gatheringMax(now: ContinuousClock.Instant) -> Duration {
        roundRobin.compactMap { gathersUntil($0, now: now) }.min().map { $0 - now } ?? .seconds(1)
    }
}
