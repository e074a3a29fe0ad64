import Model

/// Whom a call is made for.
struct FlowKey: Hashable, Sendable {
    let environment: EnvironmentID
    let person: String
}

/// Calls that wait, and which of them is made next: environments take turns, and people within an environment. Each
/// environment has places of its own, so a back end that is slow holds up nobody else's calls, and rates of its own. A
/// value without a clock.
struct CallQueue<Call: Sendable>: Sendable {
    private struct Waiting: Sendable {
        let call: Call
        let since: ContinuousClock.Instant
        /// `nil`: whenever its turn comes.
        let startBefore: ContinuousClock.Instant?
    }

    private struct Person: Sendable {
        var waiting: ArraySlice<Waiting> = []
        var bucket: TokenBucket?

        /// Takes the first calls that are not made any more. Those of one person are in order.
        mutating func takeExpired(now: ContinuousClock.Instant) -> [Call] {
            var expired: [Call] = []
            while let first = waiting.first, let startBefore = first.startBefore, startBefore <= now {
                expired.append(first.call)
                waiting.removeFirst()
            }
            return expired
        }

        /// The first call, if the person's rate lets it be made.
        mutating func takeCall(_ rates: CallRates, now: ContinuousClock.Instant) -> Call? {
            guard !waiting.isEmpty else { return nil }
            if bucket == nil, let rate = rates.perPersonAndSecond { bucket = TokenBucket(perSecond: rate, now: now) }
            return bucket?.take(now: now) ?? true ? waiting.removeFirst().call : nil
        }
    }

    private struct Lane: Sendable {
        var people: [String: Person] = [:]
        /// The people with waiting calls, whose turn it is first.
        var order: ArraySlice<String> = []
        var waitingCount = 0
        /// Since when each call is under way.
        var underWay: [ContinuousClock.Instant] = []
        var placesMax: Int
        var rates = CallRates()
        var bucket: TokenBucket?
    }

    /// Calls under way at a time, for one environment.
    let placesMax: Int
    private var lanes: [EnvironmentID: Lane] = [:]
    private var order: ArraySlice<EnvironmentID> = []
    /// Calls whose time was over when their turn came.
    private var expired: [Call] = []

    init(placesMax: Int) { self.placesMax = placesMax }

    var underWayCount: Int { lanes.values.reduce(0) { $0 + $1.underWay.count } }

    /// Calls that wait or are under way.
    var count: Int { lanes.values.reduce(0) { $0 + $1.waitingCount + $1.underWay.count } }

    /// Calls that wait or are under way, by environment.
    var counts: [EnvironmentID: Int] { lanes.mapValues { $0.waitingCount + $0.underWay.count } }

    /// Calls of an environment that wait or are under way.
    func count(of environment: EnvironmentID) -> Int {
        lanes[environment].map { $0.waitingCount + $0.underWay.count } ?? 0
    }

    /// Since when the longest waiting call of an environment waits; only of one person, if one is named.
    func oldest(of environment: EnvironmentID, person: String? = nil) -> ContinuousClock.Instant? {
        guard let lane = lanes[environment] else { return nil }
        if let person { return lane.people[person]?.waiting.first?.since }
        return lane.order.compactMap { lane.people[$0]?.waiting.first?.since }.min()
    }

    /// How many calls of one person wait.
    func waitingCount(of environment: EnvironmentID, person: String) -> Int {
        lanes[environment]?.people[person]?.waiting.count ?? 0
    }

    /// Whether a call of an environment waits since before `instant` or, where none waits, is under way since then: a
    /// few that take long do not make slow what goes fast beside them.
    func isSlow(_ environment: EnvironmentID, since instant: ContinuousClock.Instant) -> Bool {
        // Those under way are in the order of their beginnings.
        (oldest(of: environment) ?? lanes[environment]?.underWay.first).map { $0 < instant } ?? false
    }

    /// Whether an environment has places left and no call for them.
    func isIdle(_ environment: EnvironmentID) -> Bool {
        lanes[environment].map { $0.waitingCount == 0 && $0.underWay.count < $0.placesMax } ?? true
    }

    /// Environments with calls that wait or are under way.
    var environments: [EnvironmentID] { Array(lanes.keys) }

    mutating func add(
        _ call: Call, for turn: FlowKey, startBefore: ContinuousClock.Instant? = nil, now: ContinuousClock.Instant
    ) {
        withLane(turn.environment) { lane in
            if lane.people[turn.person]?.waiting.isEmpty ?? true { lane.order.append(turn.person) }
            lane.people[turn.person, default: Person()].waiting.append(
                Waiting(call: call, since: now, startBefore: startBefore))
            lane.waitingCount += 1
        }
    }

    /// The call to be made now, which is under way from now on. `nil`: none, or none yet. Overdue ones on the way to it
    /// use up neither rate nor places: `takeExpired` has them.
    mutating func next(now: ContinuousClock.Instant) -> (call: Call, turn: FlowKey)? {
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
        guard lane.underWay.count < lane.placesMax, lane.waitingCount > 0, lane.bucket?.has(now: now) ?? true else {
            return nil
        }
        for _ in 0..<lane.order.count {
            guard let name = lane.order.popFirst(), let index = lane.people.index(forKey: name) else { continue }
            // In its place: this is done for each call.
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
            lane.underWay.append(now)
            return (call, name)
        }
        return nil
    }

    /// Calls that are not made any more, each once.
    mutating func takeExpired() -> [Call] {
        defer { expired = [] }
        return expired
    }

    /// A call is over that `next` gave at `begunAt`.
    mutating func ended(
        in environment: EnvironmentID, begunAt: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        withLane(environment) { lane in
            if let index = lane.underWay.firstIndex(of: begunAt) { lane.underWay.remove(at: index) }
            guard lane.people.count > 2 * lane.order.count + Self.idlePeopleMax else { return }
            // What people have used up of their rate is remembered as long as it matters.
            lane.people = lane.people.filter { !$0.value.waiting.isEmpty || $0.value.bucket?.isFull(now: now) == false }
        }
    }

    private static var idlePeopleMax: Int { 64 }

    /// Takes all calls of an environment that are not made yet.
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

    /// Bounds an environment's calls under way: `nil`, by its places alone.
    mutating func bound(_ environment: EnvironmentID, to count: Int?) {
        let count = min(placesMax, count ?? placesMax)
        guard count != lanes[environment]?.placesMax ?? placesMax else { return }
        withLane(environment) { $0.placesMax = count }
    }

    mutating func setRates(_ rates: CallRates, of environment: EnvironmentID, now: ContinuousClock.Instant) {
        guard rates != (lanes[environment]?.rates ?? CallRates()) else { return }
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

    func rates(of environment: EnvironmentID) -> CallRates { lanes[environment]?.rates ?? CallRates() }

    private mutating func withLane<Result>(_ environment: EnvironmentID, _ body: (inout Lane) -> Result) -> Result {
        if lanes[environment] == nil { order.append(environment) }
        return body(&lanes[environment, default: Lane(placesMax: placesMax)])
    }
}
