import Model

/// A flow of fair queueing: the calls for one person.
struct FlowKey: Hashable, Sendable {
    let environment: EnvironmentID
    let person: String
}

/// Waiting calls with fair queueing by environment, and by person within an environment. Each environment has its own
/// slots and rate limits, so a slow back end does not delay other environments' calls. A value without a clock.
struct CallQueue<Call: Sendable>: Sendable {
    private struct Waiting: Sendable {
        let call: Call
        let since: ContinuousClock.Instant
        /// Start deadline; `nil`: none.
        let startBefore: ContinuousClock.Instant?
    }

    private struct Person: Sendable {
        var waiting: ArraySlice<Waiting> = []
        var bucket: TokenBucket?

        /// Removes and returns the expired calls at the head of the queue. A person's calls are ordered by deadline.
        mutating func takeExpired(now: ContinuousClock.Instant) -> [Call] {
            var expired: [Call] = []
            while let first = waiting.first, let startBefore = first.startBefore, startBefore <= now {
                expired.append(first.call)
                waiting.removeFirst()
            }
            return expired
        }

        /// Removes and returns the first call, if the person's rate limit allows it.
        mutating func takeCall(_ rates: CallRateLimits, now: ContinuousClock.Instant) -> Call? {
            guard !waiting.isEmpty else { return nil }
            if bucket == nil, let rate = rates.perPersonAndSecond { bucket = TokenBucket(perSecond: rate, now: now) }
            return bucket?.take(now: now) ?? true ? waiting.removeFirst().call : nil
        }
    }

    private struct Lane: Sendable {
        var people: [String: Person] = [:]
        /// People with waiting calls, in round-robin order.
        var order: ArraySlice<String> = []
        var waitingCount = 0
        /// Start times of the calls in flight.
        var inFlight: [ContinuousClock.Instant] = []
        var slotsMax: Int
        var rates = CallRateLimits()
        var bucket: TokenBucket?
    }

    /// Maximum number of calls in flight per environment.
    let slotsMax: Int
    private var lanes: [EnvironmentID: Lane] = [:]
    private var order: ArraySlice<EnvironmentID> = []
    /// Calls whose deadline had passed when they were next.
    private var expired: [Call] = []

    init(slotsMax: Int) { self.slotsMax = slotsMax }

    var inFlightCount: Int { lanes.values.reduce(0) { $0 + $1.inFlight.count } }

    /// Number of calls that wait or are in flight.
    var count: Int { lanes.values.reduce(0) { $0 + $1.waitingCount + $1.inFlight.count } }

    /// Number of calls that wait or are in flight, by environment.
    var counts: [EnvironmentID: Int] { lanes.mapValues { $0.waitingCount + $0.inFlight.count } }

    /// Number of calls of an environment that wait or are in flight.
    func count(of environment: EnvironmentID) -> Int {
        lanes[environment].map { $0.waitingCount + $0.inFlight.count } ?? 0
    }

    /// Enqueue time of the oldest waiting call of an environment, or of one person in it.
    func oldest(of environment: EnvironmentID, person: String? = nil) -> ContinuousClock.Instant? {
        guard let lane = lanes[environment] else { return nil }
        if let person { return lane.people[person]?.waiting.first?.since }
        return lane.order.compactMap { lane.people[$0]?.waiting.first?.since }.min()
    }

    /// Number of waiting calls of one person.
    func waitingCount(of environment: EnvironmentID, person: String) -> Int {
        lanes[environment]?.people[person]?.waiting.count ?? 0
    }

    /// Whether a call of an environment has waited since before `instant` or, if none waits, has been in flight since
    /// then. A few long calls do not make an environment slow while others are fast.
    func isSlow(_ environment: EnvironmentID, since instant: ContinuousClock.Instant) -> Bool {
        // Calls in flight are ordered by start time.
        (oldest(of: environment) ?? lanes[environment]?.inFlight.first).map { $0 < instant } ?? false
    }

    /// Whether an environment has free slots and no waiting calls.
    func isIdle(_ environment: EnvironmentID) -> Bool {
        lanes[environment].map { $0.waitingCount == 0 && $0.inFlight.count < $0.slotsMax } ?? true
    }

    /// Environments with calls that wait or are in flight.
    var environments: [EnvironmentID] { Array(lanes.keys) }

    mutating func add(
        _ call: Call, for flow: FlowKey, startBefore: ContinuousClock.Instant? = nil, now: ContinuousClock.Instant
    ) {
        withLane(flow.environment) { lane in
            if lane.people[flow.person]?.waiting.isEmpty ?? true { lane.order.append(flow.person) }
            lane.people[flow.person, default: Person()].waiting.append(
                Waiting(call: call, since: now, startBefore: startBefore))
            lane.waitingCount += 1
        }
    }

    /// Removes and returns the next call; it is in flight from then on. `nil`: none can start now. Expired calls use
    /// neither rate limit nor slot; `takeExpired` returns them.
    mutating func next(now: ContinuousClock.Instant) -> (call: Call, flow: FlowKey)? {
        for _ in 0..<order.count {
            guard let environment = order.popFirst() else { return nil }
            order.append(environment)
            var expired: [Call] = []
            let next = withLane(environment) { Self.next(in: &$0, &expired, now) }
            if !expired.isEmpty { self.expired += expired }
            if let next {
                return (next.call, FlowKey(environment: environment, person: next.person))
            }
        }
        return nil
    }

    private static func next(
        in lane: inout Lane, _ expired: inout [Call], _ now: ContinuousClock.Instant
    ) -> (call: Call, person: String)? {
        guard lane.inFlight.count < lane.slotsMax, lane.waitingCount > 0, lane.bucket?.has(now: now) ?? true else {
            return nil
        }
        for _ in 0..<lane.order.count {
            guard let name = lane.order.popFirst(), let index = lane.people.index(forKey: name) else { continue }
            // Modified in place: this runs for each call.
            let late = lane.people.values[index].takeExpired(now: now)
            if !late.isEmpty { expired += late }
            lane.waitingCount -= late.count
            let call = lane.people.values[index].takeCall(lane.rates, now: now)
            if !lane.people.values[index].waiting.isEmpty {
                lane.order.append(name)
            } else if lane.people.values[index].bucket == nil {
                lane.people.remove(at: index)
            }
            guard let call else { continue }
            _ = lane.bucket?.take(now: now)
            lane.waitingCount -= 1
            lane.inFlight.append(now)
            return (call, name)
        }
        return nil
    }

    /// Removes and returns the expired calls.
    mutating func takeExpired() -> [Call] {
        defer { expired = [] }
        return expired
    }

    /// Ends a call that `next` returned at `startedAt`.
    mutating func ended(
        in environment: EnvironmentID, startedAt: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        withLane(environment) { lane in
            if let index = lane.inFlight.firstIndex(of: startedAt) { lane.inFlight.remove(at: index) }
            guard lane.people.count > 2 * lane.order.count + Self.idlePeopleMax else { return }
            // A person's token bucket is kept until it is full again.
            lane.people = lane.people.filter { !$0.value.waiting.isEmpty || $0.value.bucket?.isFull(now: now) == false }
        }
    }

    private static var idlePeopleMax: Int { 64 }

    /// Removes and returns all waiting calls of an environment.
    mutating func withdraw(_ environment: EnvironmentID) -> [Call] {
        withLane(environment) { lane in
            let calls = lane.order.flatMap { lane.people[$0]?.waiting.map { $0.call } ?? [] }
            for name in lane.order {
                lane.people[name]?.waiting = []
                if lane.people[name]?.bucket == nil { lane.people[name] = nil }
            }
            lane.order = []
            lane.waitingCount = 0
            return calls
        }
    }

    /// Limits an environment's calls in flight; `nil`: to the number of its slots.
    mutating func limit(_ environment: EnvironmentID, to count: Int?) {
        let count = min(slotsMax, count ?? slotsMax)
        guard count != lanes[environment]?.slotsMax ?? slotsMax else { return }
        withLane(environment) { $0.slotsMax = count }
    }

    mutating func setRates(_ rates: CallRateLimits, of environment: EnvironmentID, now: ContinuousClock.Instant) {
        guard rates != (lanes[environment]?.rates ?? CallRateLimits()) else { return }
        withLane(environment) { lane in
            lane.rates = rates
            lane.bucket = rates.perSecond.map { rate in
                lane.bucket?.changed(to: rate, now: now) ?? TokenBucket(perSecond: rate, now: now)
            }
            lane.people = lane.people.mapValues { person in
                var person = person
                person.bucket = rates.perPersonAndSecond.flatMap { person.bucket?.changed(to: $0, now: now) }
                return person
            }
        }
    }

    func rates(of environment: EnvironmentID) -> CallRateLimits { lanes[environment]?.rates ?? CallRateLimits() }

    private mutating func withLane<Result>(_ environment: EnvironmentID, _ body: (inout Lane) -> Result) -> Result {
        if lanes[environment] == nil { order.append(environment) }
        return body(&lanes[environment, default: Lane(slotsMax: slotsMax)])
    }
}
