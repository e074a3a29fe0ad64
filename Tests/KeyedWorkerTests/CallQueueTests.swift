import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// The order of calls.
@Suite(.ownThreads) struct CallQueueTests {
    private let start = ContinuousClock.now
    private let acme = EnvironmentID(rawValue: 1)
    private let books = EnvironmentID(rawValue: 2)

    @Test func callsAreQueuedFairlyByPerson() {
        var queue = CallQueue<String>(slotsMax: 100)
        for number in 1...50 { queue.add("ana \(number)", for: flow(acme, "ana"), now: start) }
        for number in 1...2 { queue.add("ben \(number)", for: flow(acme, "ben"), now: start) }
        #expect(take(6, of: &queue, at: start) == ["ana 1", "ben 1", "ana 2", "ben 2", "ana 3", "ana 4"])
    }

    /// A back end whose calls do not end delays only its own environment.
    @Test func environmentHasItsOwnSlots() {
        var queue = CallQueue<String>(slotsMax: 2)
        for number in 1...5 { queue.add("acme \(number)", for: flow(acme, "ana"), now: start) }
        #expect(take(9, of: &queue, at: start) == ["acme 1", "acme 2"])
        #expect(!queue.isIdle(acme) && queue.isIdle(books))
        queue.add("books 1", for: flow(books, "ana"), now: start)
        #expect(take(9, of: &queue, at: start) == ["books 1"])
        queue.ended(in: acme, startedAt: start, now: start)
        #expect(take(9, of: &queue, at: start) == ["acme 3"])
        #expect(queue.count(of: acme) == 4 && queue.inFlightCount == 3)
    }

    @Test func rateLimitOfEnvironmentIsKept() {
        var queue = CallQueue<String>(slotsMax: 1_000)
        queue.setRates(CallRateLimits(perSecond: 10), of: acme, now: start)
        for number in 1...100 { queue.add("\(number)", for: flow(acme, "ana"), now: start) }
        #expect(take(1_000, of: &queue, at: start).count == 10)
        #expect(take(1_000, of: &queue, at: start + .milliseconds(99)).isEmpty)
        #expect(take(1_000, of: &queue, at: start + .milliseconds(200)).count == 2)
        // Unused tokens are kept for one second at most.
        #expect(take(1_000, of: &queue, at: start + .seconds(60)).count == 10)
    }

    @Test func rateLimitOfPersonDoesNotLimitOthers() {
        var queue = CallQueue<String>(slotsMax: 1_000)
        queue.setRates(CallRateLimits(perPersonAndSecond: 2), of: acme, now: start)
        for number in 1...9 { queue.add("ana \(number)", for: flow(acme, "ana"), now: start) }
        #expect(take(99, of: &queue, at: start) == ["ana 1", "ana 2"])
        queue.add("ben 1", for: flow(acme, "ben"), now: start)
        #expect(take(99, of: &queue, at: start) == ["ben 1"])
        #expect(take(99, of: &queue, at: start + .milliseconds(500)) == ["ana 3"])
        // Removing and adding a person does not add tokens.
        for startedAt in [start, start, start, start + .milliseconds(500)] {
            queue.ended(in: acme, startedAt: startedAt, now: start + .milliseconds(500))
        }
        #expect(take(99, of: &queue, at: start + .milliseconds(500)).isEmpty)
    }

    /// A worker's share of a small rate limit may be below one call per second.
    @Test func rateLimitBelowOnePerSecondIsKept() {
        var queue = CallQueue<String>(slotsMax: 10)
        queue.setRates(CallRateLimits(perSecond: 1).times(0.25), of: acme, now: start)
        for number in 1...3 { queue.add("\(number)", for: flow(acme, "ana"), now: start) }
        #expect(take(9, of: &queue, at: start) == ["1"])
        #expect(take(9, of: &queue, at: start + .seconds(3)).isEmpty)
        #expect(take(9, of: &queue, at: start + .seconds(4)) == ["2"])
        queue.setRates(CallRateLimits(), of: acme, now: start + .seconds(4))
        #expect(take(9, of: &queue, at: start + .seconds(4)) == ["3"])
    }

    @Test func callsInFlightCanBeLimitedBelowSlots() {
        var queue = CallQueue<String>(slotsMax: 8)
        queue.limit(acme, to: 2)
        for number in 1...9 { queue.add("\(number)", for: flow(acme, "ana"), now: start) }
        #expect(take(9, of: &queue, at: start).count == 2)
        queue.limit(acme, to: 3)
        #expect(take(9, of: &queue, at: start).count == 1)
        queue.limit(acme, to: nil)
        #expect(take(9, of: &queue, at: start).count == 5)
    }

    @Test func queueReturnsOldestWaitingCall() {
        var queue = CallQueue<String>(slotsMax: 1)
        queue.add("ana", for: flow(acme, "ana"), now: start)
        queue.add("ben", for: flow(acme, "ben"), now: start + .seconds(1))
        #expect(queue.oldest(of: acme) == start && queue.oldest(of: acme, person: "ben") == start + .seconds(1))
        #expect(take(1, of: &queue, at: start) == ["ana"])
        #expect(queue.oldest(of: acme) == start + .seconds(1) && queue.oldest(of: acme, person: "ana") == nil)
        #expect(queue.withdraw(acme) == ["ben"])
        #expect(queue.oldest(of: acme) == nil && queue.count(of: acme) == 1)
    }

    /// By the wait of waiting calls; if none waits, by the duration of calls in flight.
    @Test func queueDetectsSlowEnvironments() {
        var queue = CallQueue<String>(slotsMax: 1)
        #expect(!queue.isSlow(acme, since: start + .seconds(9)))
        queue.add("ana", for: flow(acme, "ana"), now: start)
        #expect(queue.isSlow(acme, since: start + .seconds(1)) && !queue.isSlow(acme, since: start))
        #expect(take(1, of: &queue, at: start + .seconds(2)) == ["ana"])
        #expect(!queue.isSlow(acme, since: start + .seconds(2)) && queue.isSlow(acme, since: start + .seconds(3)))
        #expect(!queue.isSlow(books, since: start + .seconds(3)))
        queue.add("ben", for: flow(acme, "ben"), now: start + .seconds(3))
        #expect(!queue.isSlow(acme, since: start + .seconds(3)), "what waits does so for a moment")
        #expect(queue.withdraw(acme) == ["ben"])
        queue.ended(in: acme, startedAt: start + .seconds(2), now: start + .seconds(3))
        #expect(!queue.isSlow(acme, since: start + .seconds(9)) && queue.inFlightCount == 0)
    }

    /// A backlog longer than the deadlines: expired calls use no tokens.
    @Test(arguments: [1, 600]) func expiredCallsUseNoTokens(people: Int) {
        var queue = CallQueue<Int>(slotsMax: 64)
        queue.setRates(CallRateLimits(perSecond: 5), of: acme, now: start)
        var startBefore: [Int: ContinuousClock.Instant] = [:]
        func add(_ number: Int, at now: ContinuousClock.Instant) {
            startBefore[number] = now + .seconds(20)
            queue.add(
                number, for: flow(acme, "\(number % people)"), startBefore: now + .seconds(20), now: now)
        }
        for number in 0..<600 { add(number, at: start) }
        var (made, expired) = (0, 0)
        for tick in 0..<600 {
            let now = start + .milliseconds(100) * tick
            while let (number, _) = queue.next(now: now) {
                queue.ended(in: acme, startedAt: now, now: now)
                if now < startBefore[number] ?? now { made += 1 } else { add(number, at: now) }
            }
            for number in queue.takeExpired() {
                expired += 1
                add(number, at: now)
            }
        }
        #expect(made >= 250 && expired >= 250, "\(made) of 300, \(expired) expired")
        #expect(queue.count(of: acme) == 600 - made)
    }

    // MARK: Retries of calls without a free slot

    @Test func retriesOfOnePersonAreSpaced() {
        var plan = SlotSchedule()
        let waits = (1...3).map { _ in plan.wait(for: flow(acme, "ana"), every: .seconds(1), now: start) }
        #expect(waits == [.seconds(1), .seconds(2), .seconds(3)])
        // Two people share the rate; another environment has its own.
        #expect(plan.wait(for: flow(acme, "ben"), every: .seconds(1), now: start) == .seconds(2))
        #expect(plan.wait(for: flow(books, "ana"), every: .seconds(1), now: start) == .seconds(1))
        plan.prune(now: start)
        #expect(Set(plan.environments) == [acme, books])
        plan.prune(now: start + .seconds(90))
        #expect(plan.environments.isEmpty)
        #expect(plan.wait(for: flow(acme, "ana"), every: .seconds(1), now: start + .seconds(90)) == .seconds(1))
        #expect(plan.environments == [acme])
        plan.remove(acme)
        #expect(plan.environments.isEmpty)
        #expect(plan.wait(for: flow(acme, "ana"), every: .seconds(1), now: start) == .seconds(1))
    }

    @Test func retryWaitIsLimited() {
        var plan = SlotSchedule()
        for _ in 0..<500 {
            #expect(plan.wait(for: flow(acme, "ana"), every: .seconds(1), now: start) <= .seconds(60))
        }
    }

    @Test func retriesOfManyPeopleAreLimited() {
        var plan = SlotSchedule()
        for number in 1..<20_000 {
            let wait = plan.wait(for: flow(acme, "\(number)"), every: .microseconds(1), now: start)
            #expect(wait > .zero && wait <= .microseconds(SlotSchedule.peopleMax))
        }
    }

    private func flow(_ environment: EnvironmentID, _ person: String) -> FlowKey {
        FlowKey(environment: environment, person: person)
    }

    private func take(_ count: Int, of queue: inout CallQueue<String>, at now: ContinuousClock.Instant) -> [String] {
        (0..<count).compactMap { _ in queue.next(now: now)?.call }
    }
}
