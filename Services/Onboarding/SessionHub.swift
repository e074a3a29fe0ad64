import Essentials
import HTTPServer
import Logging
import ObjectStore
import Postgres
import ServiceLifecycle
import ServiceRuntime
import Synchronization

/// The open sockets of this instance. Polls the events of all sessions, from any instance, and delivers those of its
/// own sockets.
final class SessionHub: Service, Sendable {
    private struct Entry {
        let mailbox: Mailbox
        let expires: ContinuousClock.Instant
    }

    private struct State {
        var entries: [Bytea: Entry] = [:]
        var isClosed = false
        /// The position up to which events were delivered.
        var position: Int64
        var nextSweep = ContinuousClock.now
    }

    private static let countMax = 1_000
    private static let sweepInterval = Duration.seconds(1)
    /// The poll interval without open sockets.
    private static let idleInterval = Duration.seconds(1)
    private let pool: Pool
    private let events: EventStore
    private let limits: OnboardingLimits
    private let health: Health?
    private let logger: Logger
    /// Ends the wait for the first socket.
    private let wakeup: Wakeup
    private let state: Mutex<State>

    /// - Parameters:
    ///   - position: The position of events before the first socket opens.
    ///   - pool: A dedicated pool with one connection.
    /// - Throws: `NoFileDescriptor`
    init(
        after position: Int64, pool: Pool, events: EventStore, limits: OnboardingLimits, health: Health?, logger: Logger
    ) throws {
        wakeup = try Wakeup()
        self.pool = pool
        self.events = events
        self.limits = limits
        self.health = health
        self.logger = logger
        state = Mutex(State(position: position))
    }

    /// Delivers the session's events to this socket, unless a newer one is open here; closes the older one.
    func add(_ mailbox: Mailbox, expires: ContinuousClock.Instant) {
        let (older, isClosed) = state.withLock { state in
            let other = state.entries[mailbox.session]?.mailbox
            if let other, other.number > mailbox.number { return (mailbox as Mailbox?, state.isClosed) }
            state.entries[mailbox.session] = Entry(mailbox: mailbox, expires: expires)
            return (other, state.isClosed)
        }
        older?.close(SessionClose.replaced)
        wakeup.signal()
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
        try await Repeating("events", every: limits.interval, health: health, logger: logger, isFinal: Lineage.isOver) {
            try await self.deliver()
            try await self.closeStaleSockets()
        }.run()
    }

    private func closeAll() {
        let mailboxes = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.mailbox)
        }
        for mailbox in mailboxes { mailbox.close(.goingAway) }
    }

    /// Delivers new events. A newly opened socket loads earlier ones itself.
    private func deliver() async throws {
        let (position, isIdle) = state.withLock { ($0.position, $0.entries.isEmpty) }
        let (next, newEvents) = try await pool.run(interruptedBy: wakeup) { [events, wakeup] connection in
            if isIdle { wakeup.wait(atMost: Self.idleInterval) }
            let newest = try EventStore.position(on: &connection)
            guard newest > position else { return (position, [EventStore.StoredEvent]()) }
            let newEvents = try events.events(after: position, countMax: Self.countMax, on: &connection)
            return (newEvents.count < Self.countMax ? newest : newEvents.last?.position ?? newest, newEvents)
        }
        for event in newEvents {
            guard let mailbox = state.withLock({ $0.entries[event.session]?.mailbox }) else { continue }
            do {
                mailbox.offer(try events.open(event))
            } catch {
                logger.error("event decryption failed", metadata: ["error": "\(error)"])
                mailbox.close(.failed)
            }
        }
        state.withLock { $0.position = next }
    }

    /// Closes sockets whose session has expired or was reopened at another instance.
    private func closeStaleSockets() async throws {
        let now = ContinuousClock.now
        let entries = state.withLock { state -> [Entry] in
            guard now >= state.nextSweep else { return [] }
            state.nextSweep = now + Self.sweepInterval
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
