import HTTPServer
import Logging
import ObjectStore
import Postgres
import ServiceLifecycle
import ServiceRuntime
import Synchronization

/// The sockets of this instance. It follows the events of all sessions and hands out those of its own; whichever
/// instance stored them.
final class SessionHub: Service, Sendable {
    private struct Entry {
        let mailbox: Mailbox
        let expires: ContinuousClock.Instant
    }

    private struct State {
        var entries: [Bytea: Entry] = [:]
        var isClosed = false
        /// Events up to here were handed out.
        var position: Int64
        var lookAt = ContinuousClock.now
    }

    private static let countMax = 1_000
    private static let lookInterval = Duration.seconds(1)
    private let pool: Pool
    private let events: EventStore
    private let limits: OnboardingLimits
    private let health: Health?
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameters:
    ///   - position: Where events stand before the first socket opens.
    ///   - pool: One connection of its own.
    init(
        after position: Int64, pool: Pool, events: EventStore, limits: OnboardingLimits, health: Health?,
        logger: Logger
    ) {
        self.pool = pool
        self.events = events
        self.limits = limits
        self.health = health
        self.logger = logger
        state = Mutex(State(position: position))
    }

    /// Hands out the session's events to this socket from now on, unless a newer one is here; the older is closed.
    func add(_ mailbox: Mailbox, expires: ContinuousClock.Instant) {
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
        defer { closeAll() }
        try await Repeating(
            "events", every: limits.interval, health: health, logger: logger, isFinal: Lineage.isOver
        ) {
            try await self.handOut()
            try await self.look()
        }.run()
    }

    private func closeAll() {
        let mailboxes = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.mailbox)
        }
        for mailbox in mailboxes { mailbox.close(.goingAway) }
    }

    /// Hands out what is new. A socket that opens reads by itself what was there before.
    private func handOut() async throws {
        let position = state.withLock { $0.position }
        let (next, news) = try await pool.run { [events] connection in
            let newest = try EventStore.position(on: &connection)
            guard newest > position else { return (position, [EventStore.Stored]()) }
            let news = try events.events(after: position, countMax: Self.countMax, on: &connection)
            return (news.count < Self.countMax ? newest : news.last?.position ?? newest, news)
        }
        for event in news {
            guard let mailbox = state.withLock({ $0.entries[event.session]?.mailbox }) else { continue }
            do {
                mailbox.offer(try events.open(event))
            } catch {
                logger.error("an event cannot be read", metadata: ["error": "\(error)"])
                mailbox.close(.failed)
            }
        }
        state.withLock { $0.position = next }
    }

    /// Closes sockets whose session has expired, or is another instance's by now.
    private func look() async throws {
        let now = ContinuousClock.now
        let entries = state.withLock { state -> [Entry] in
            guard now >= state.lookAt else { return [] }
            state.lookAt = now + Self.lookInterval
            return Array(state.entries.values)
        }
        if entries.isEmpty { return }
        for entry in entries where entry.expires <= now { entry.mailbox.close(SessionClose.expired) }
        let (sessions, numbers) = (entries.map(\.mailbox.session), entries.map(\.mailbox.number))
        let replaced = try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT s.id FROM unnest(\(sessions), \(numbers)) AS o(session, number)
                JOIN onboarding.session s ON s.id = o.session WHERE s.socket > o.number
                """)
            return Set(try rows.decode(Bytea.self))
        }
        for entry in entries where replaced.contains(entry.mailbox.session) {
            entry.mailbox.close(SessionClose.replaced)
        }
    }
}
