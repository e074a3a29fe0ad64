import Model

/// What an environment's calls have room for, as one batch is decided.
struct AdmissionControl {
    /// The horizon of admission: calls that the rate would start later than this are parked instead.
    private static let aheadMax = Duration.seconds(10)

    let rates: CallRates
    /// Calls of people who have some.
    private let countMax: Int
    /// Calls when one of somebody comes who has none.
    private let countMaxOfNew: Int
    private var count: Int
    /// A call has waited for long. Calls that take long do not count here: others have places beside them.
    private let isWaiting: Bool
    /// Since when each person's oldest call waits, and how many do.
    private let waiting: (String) -> (since: ContinuousClock.Instant?, count: Int)
    private let now: ContinuousClock.Instant
    private let waitMax: Duration
    /// The calls that were let through with this batch, by person.
    private var taken: [String: Int] = [:]

    /// - Parameter returning: Of a back end that comes back: how many calls may be held, and how many are whose answers
    ///   are not decided yet. One that ends would take the next one along before it is known what it was told.
    init<Call>(
        _ calls: CallQueue<Call>, _ environment: EnvironmentID, _ limits: WorkerLimits,
        returning: (max: Int, count: Int)? = nil, now: ContinuousClock.Instant
    ) {
        let waitMax = limits.turnMax
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
        countMax = min(limits.heldMax(beside: all - count), returning?.max ?? .max)
        countMaxOfNew = min(limits.heldMaxOfNew(beside: all - count), returning?.max ?? .max)
        count = max(count, returning?.count ?? 0)
    }

    /// How many more calls there is room for, of people who have some.
    var left: Int { max(0, min(countMax, Self.count(rates.perSecond, within: Self.aheadMax)) - count) }

    /// Whether there is room for one more call; then it is taken.
    ///
    /// A person whose calls have waited for long gets no more room. Where all calls wait, or take all the room there
    /// is, a person gets one that has none. There is none for what a rate might not begin in time.
    @discardableResult
    mutating func take(_ turn: FlowKey, startBefore: ContinuousClock.Instant) -> Bool {
        let (since, waitingCount) = waiting(turn.person)
        let own = waitingCount + taken[turn.person, default: 0]
        let ahead = min(Self.aheadMax, (startBefore - now) / 2)
        let rateMax = Self.count(rates.perSecond, within: ahead)
        let isInTime = own < Self.count(rates.perPersonAndSecond, within: ahead)
        let isRoom =
            own == 0
            ? count < min(countMaxOfNew, rateMax * 2)
            : count < min(countMax, rateMax) && !isWaiting && since.map { now - $0 <= waitMax } ?? true
        guard isInTime, isRoom else { return false }
        taken[turn.person, default: 0] += 1
        count += 1
        return true
    }

    /// The calls that a rate begins in that time, at least one. Twice as many is a number, too.
    private static func count(_ perSecond: Double?, within time: Duration) -> Int {
        guard let perSecond else { return .max / 2 }
        return max(1, Int(perSecond * (time / .seconds(1))))
    }
}
