import Logging
import Postgres
import Runtime
import ServiceLifecycle
import Synchronization

/// The sockets of this instance. It follows the events of all sessions and hands out those of its own; whichever
/// instance stored them.
final class SessionHub: Service, Sendable {
    private struct Entry {
        let mailbox: Mailbox
        /// Milliseconds since 1970.
        let expires: Int64
    }

    private struct State {
        var entries: [Bytea: Entry] = [:]
        var isClosed = false
    }

    private static let countMax = 1_000
    private static let tellInterval = Duration.milliseconds(50)
    private static let lookInterval = Duration.seconds(1)
    private static let forgetInterval = Duration.seconds(5)
    private let pool: Pool
    private let events: EventStore
    private let watch: RealmWatch
    private let limits: OnboardingLimits
    private let health: Health?
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter pool: One connection of its own.
    init(pool: Pool, events: EventStore, limits: OnboardingLimits, health: Health?, logger: Logger) {
        self.pool = pool
        self.events = events
        self.limits = limits
        self.health = health
        self.logger = logger
        watch = RealmWatch(events: events)
    }

    /// How many sockets are open.
    var count: Int { state.withLock { $0.entries.count } }

    /// Hands out the session's events to this socket from now on, unless a newer one is here; the older is closed.
    func add(_ mailbox: Mailbox, expires: Int64) {
        let (older, isClosed) = state.withLock { state in
            let other = state.entries[mailbox.session]?.mailbox
            if let other, other.number > mailbox.number { return (mailbox as Mailbox?, state.isClosed) }
            state.entries[mailbox.session] = Entry(mailbox: mailbox, expires: expires)
            return (other, state.isClosed)
        }
        older?.close(SessionClose.replaced)
        if isClosed { mailbox.close(.goingAway) }
    }

    func remove(_ mailbox: Mailbox) {
        state.withLock { state in
            if state.entries[mailbox.session]?.mailbox === mailbox { state.entries[mailbox.session] = nil }
        }
    }

    // MARK: Running

    func run() async throws {
        await cancelWhenGracefulShutdown { await self.follow() }
        let mailboxes = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.mailbox)
        }
        for mailbox in mailboxes { mailbox.close(.goingAway) }
    }

    private func follow() async {
        var position: Int64?
        var backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))
        var due = (tell: ContinuousClock.now, look: ContinuousClock.now, forget: ContinuousClock.now)
        while !Task.isCancelled {
            do {
                position = try await step(after: position, &due)
                backoff.succeeded()
                health?.ready(true, source: "database")
                try? await Task.sleep(for: limits.interval)
            } catch {
                logger.warning("cannot follow events", metadata: ["error": "\(error)"])
                health?.ready(false, source: "database", reason: "PostgreSQL does not answer")
                try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    private func step(
        after position: Int64?,
        _ due: inout (tell: ContinuousClock.Instant, look: ContinuousClock.Instant, forget: ContinuousClock.Instant)
    ) async throws -> Int64 {
        let now = ContinuousClock.now
        let tells = now >= due.tell
        let forgets = now >= due.forget
        if tells { due.tell = now + Self.tellInterval }
        if forgets { due.forget = now + Self.forgetInterval }
        let (next, news) = try await pool.run { [events, watch] connection in
            if tells {
                _ = try watch.register(on: &connection)
                _ = try watch.tell(on: &connection)
            }
            if forgets { try SessionStore.forgetExpired(countMax: Self.countMax, on: &connection) }
            let newest = try EventStore.position(on: &connection)
            // A socket that opens reads by itself what was there before.
            guard let position, newest > position else { return (newest, [EventStore.Stored]()) }
            let news = try events.events(after: position, countMax: Self.countMax, on: &connection)
            return (news.count < Self.countMax ? newest : news.last?.position ?? newest, news)
        }
        for event in news { state.withLock { $0.entries[event.session]?.mailbox }?.offer(event) }
        if now >= due.look {
            due.look = now + Self.lookInterval
            try await look()
        }
        return next
    }

    /// Closes sockets whose session has expired, or is another instance's by now.
    private func look() async throws {
        let now = Timestamp.nowMilliseconds()
        let entries = state.withLock { Array($0.entries.values) }
        for entry in entries where entry.expires <= now { entry.mailbox.close(SessionClose.expired) }
        if entries.isEmpty { return }
        let (sessions, numbers) = (entries.map(\.mailbox.session), entries.map(\.mailbox.number))
        let replaced = try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT s.id FROM unnest(\(sessions), \(numbers)) AS o(session, number)
                JOIN onboarding.session s ON s.id = o.session WHERE s.socket > o.number
                """)
            return try rows.map { try $0.value(0, as: Bytea.self) }
        }
        for entry in entries where replaced.contains(entry.mailbox.session) {
            entry.mailbox.close(SessionClose.replaced)
        }
    }
}
