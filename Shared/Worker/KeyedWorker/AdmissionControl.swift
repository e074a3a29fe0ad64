import Model

/// Remaining capacity for an environment's calls while one batch is decided.
struct AdmissionControl {
    /// Horizon of admission: calls that the rate limit would start later are deferred.
    private static let aheadMax = Duration.seconds(10)

    let rates: CallRateLimits
    /// Maximum number of calls if the person already has some.
    private let countMax: Int
    /// Maximum number of calls if the person has none.
    private let countMaxForNewPerson: Int
    private var count: Int
    /// Whether a call has waited longer than `waitMax`. Long calls do not count: others have free slots.
    private let isWaiting: Bool
    /// Enqueue time of a person's oldest waiting call, and the number of waiting calls.
    private let waiting: (String) -> (since: ContinuousClock.Instant?, count: Int)
    private let now: ContinuousClock.Instant
    private let waitMax: Duration
    /// Number of calls admitted with this batch, by person.
    private var admitted: [String: Int] = [:]

    /// - Parameter recovering: While a back end recovers: the maximum number of calls, and the number of calls without
    ///   a decided result. A call that ends would otherwise start the next one before its result is evaluated.
    init<Call>(
        _ calls: CallQueue<Call>, _ environment: EnvironmentID, _ limits: WorkerLimits,
        recovering: (max: Int, count: Int)? = nil, now: ContinuousClock.Instant
    ) {
        let waitMax = limits.queueWaitMax
        let all = calls.count
        rates = calls.rates(of: environment)
        count = calls.count(of: environment)
        isWaiting = calls.oldest(of: environment).map { now - $0 > waitMax } ?? false
        waiting = { person in
            (
                calls.oldest(of: environment, person: person),
                calls.waitingCount(of: environment, person: person)
            )
        }
        self.now = now
        self.waitMax = waitMax
        countMax = min(limits.keysInFlightMax(beside: all - count), recovering?.max ?? .max)
        countMaxForNewPerson = min(limits.keysInFlightMaxForNewPerson(beside: all - count), recovering?.max ?? .max)
        count = max(count, recovering?.count ?? 0)
    }

    /// Remaining number of calls for people who already have some.
    var left: Int { max(0, min(countMax, Self.count(rates.perSecond, within: Self.aheadMax)) - count) }

    /// Admits one more call if there is capacity.
    ///
    /// A person whose calls have waited for `waitMax` gets no more. If all calls wait, or no capacity is left, a person
    /// without calls still gets one. Calls that the rate limit may not start before their deadline are not admitted.
    @discardableResult
    mutating func admit(_ flow: FlowKey, startBefore: ContinuousClock.Instant) -> Bool {
        let (since, waitingCount) = waiting(flow.person)
        let own = waitingCount + admitted[flow.person, default: 0]
        let ahead = min(Self.aheadMax, (startBefore - now) / 2)
        let rateMax = Self.count(rates.perSecond, within: ahead)
        let isInTime = own < Self.count(rates.perPersonAndSecond, within: ahead)
        let hasCapacity =
            own == 0
            ? count < min(countMaxForNewPerson, rateMax * 2)
            : count < min(countMax, rateMax) && !isWaiting && since.map { now - $0 <= waitMax } ?? true
        guard isInTime, hasCapacity else { return false }
        admitted[flow.person, default: 0] += 1
        count += 1
        return true
    }

    /// Number of calls that the rate limit starts in this time; at least one, and small enough to be doubled.
    private static func count(_ perSecond: Double?, within time: Duration) -> Int {
        guard let perSecond else { return .max / 2 }
        return max(1, Int(perSecond * (time / .seconds(1))))
    }
}
