import Model

/// What is to be decided: each environment's items, whose turn it is, and how long they are gathered.
extension WorkScheduler {
    private static var gatheringMax: Duration { .milliseconds(20) }
    private static var gatheredMax: Int { 128 }

    mutating func enqueue(_ item: Item) {
        let environment = item.item.environment
        if queues[environment, default: []].isEmpty { turns.append(environment) }
        queues[environment, default: []].append(item)
    }

    /// What was being decided comes again, before what came meanwhile.
    mutating func putBack() {
        var items = deciding + parts.joined()
        if let refusal { items.append(refusal.item) }
        (deciding, parts, refusal) = ([], [], nil)
        for (environment, items) in Dictionary(grouping: items, by: { $0.item.environment }) {
            if queues[environment, default: []].isEmpty { turns.insert(environment, at: 0) }
            queues[environment, default: []].insert(contentsOf: items, at: 0)
        }
    }

    /// Whether something of an environment is to be decided or put down now.
    func hasWork(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> Bool {
        guard gathersUntil(environment, now: now) == nil, let queue = queues[environment] else { return false }
        return queue.contains { !waits($0, now: now) }
    }

    /// The next items of one environment, in turn.
    mutating func nextBatch(now: ContinuousClock.Instant) -> WorkAction<Message, Call>? {
        if let refusal {
            deciding = [refusal.item]
            self.refusal = nil
            let parking = parking(refusal.item, refusal.reason, nil, .planned, decision: 0, now: now)
            return .park([parking], in: refusal.item.item.environment)
        }
        if let part = parts.popLast() { return decide(part, now: now) }
        guard let index = turns.firstIndex(where: { hasWork($0, now: now) }) else { return nil }
        let environment = turns.remove(at: index)
        var queue = queues.removeValue(forKey: environment) ?? []
        let isAside = isSetAside(environment, now: now)
        let taken = isAside ? queue.filter { !waits($0, now: now) } : Array(queue.prefix(limits.batchCountMax))
        queue = isAside ? queue.filter { waits($0, now: now) } : Array(queue.dropFirst(taken.count))
        if !queue.isEmpty {
            queues[environment] = queue
            turns.append(environment)
        }
        guard !isAside else {
            takeUp(taken, now: now)
            return .park(parkings(setAside: taken, in: environment, now: now), in: environment)
        }
        return decide(taken, now: now)
    }

    /// Answers that have come no longer keep the places of their calls. Those that come later in the round do so when
    /// they are taken up.
    mutating func freePlaces(now: ContinuousClock.Instant) {
        guard limits.answersKeepPlaces else { return }
        for environment in queues.keys { queues[environment] = queues[environment]?.map { freed($0, now: now) } }
    }

    /// An item that keeps no place.
    private mutating func freed(_ item: Item, now: ContinuousClock.Instant) -> Item {
        guard let since = item.placeSince else { return item }
        var item = item
        calls.ended(in: item.item.environment, begunAt: since, now: now)
        item.placeSince = nil
        return item
    }

    private mutating func takeUp(_ items: [Item], now: ContinuousClock.Instant) {
        deciding = items.map { freed($0, now: now) }
    }

    private mutating func decide(_ items: [Item], now: ContinuousClock.Instant) -> WorkAction<Message, Call> {
        takeUp(items, now: now)
        let environment = items[0].item.environment
        // What is finished is parked no longer: so what may be parked is not finished without a look at it.
        let mayBeParked = mayHaveParked(environment)
        for index in deciding.indices {
            let key = deciding[index].key
            deciding[index].item.canCall = canCall(for: key)
            deciding[index].item.trace = inFlight[key]?.trace
            if mayBeParked { deciding[index].item.isEdit = true }
        }
        return .decide(deciding, in: environment)
    }

    /// Whether keys of the environment may be parked, as far as is known.
    func mayHaveParked(_ environment: EnvironmentID) -> Bool { parkedEnvironments?.contains(environment) != false }

    // MARK: Gathering

    /// Until when what an environment has to decide may wait for more of it, to be written in one transaction. While
    /// so many of its calls wait that none of its places is empty meanwhile, nothing comes later for it.
    func gathersUntil(_ environment: EnvironmentID, now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let last = decidedAt[environment], last + Self.gatheringMax > now,
            !isStopping, !limits.answersKeepPlaces, queues[environment]?.count ?? 0 < Self.gatheredMax,
            calls.count(of: environment) >= 2 * limits.inFlightMax
        else { return nil }
        return last + Self.gatheringMax
    }

    /// The longest that may be waited while something is gathered.
    func gatheringMax(now: ContinuousClock.Instant) -> Duration {
        turns.compactMap { gathersUntil($0, now: now) }.min().map { $0 - now } ?? .seconds(1)
    }
}
