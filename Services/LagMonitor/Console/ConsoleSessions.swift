import Crypto
import Essentials
import Synchronization

/// Who is signed in at the console: in memory only, so after a start everybody signs in again.
final class ConsoleSessions: Sendable {
    /// One sign-in.
    struct Session: Sendable, Equatable {
        /// The administrator's e-mail address.
        let email: String
        /// What each request that changes something must repeat in a header.
        let token: String
        fileprivate let begun: ContinuousClock.Instant
        fileprivate var used: ContinuousClock.Instant
        fileprivate var minute: ContinuousClock.Instant
        fileprivate var requestCount = 0
    }

    /// What came of a request's session.
    enum Found: Sendable, Equatable {
        case session(Session)
        /// It is forged, over, or never was.
        case none
        /// It asks more often than ``requestCountMax`` in a minute.
        case busy
    }

    /// Sessions at a time; the one that was used longest ago makes room.
    static let countMax = 200
    /// Requests of one session in a minute.
    static let requestCountMax = 600

    private let ageMax: Duration
    private let idleMax: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    /// By the SHA-256 of what the browser holds: nobody learns from how long a look takes, or from this memory.
    private let sessions = Mutex<[SHA256Digest: Session]>([:])

    init(
        ageMax: Duration, idleMax: Duration,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        (self.ageMax, self.idleMax, self.now) = (ageMax, idleMax, now)
    }

    var count: Int { sessions.withLock { $0.count } }

    /// Begins a session.
    ///
    /// - Returns: What the browser is to hold: 256 random bits.
    func begin(_ email: String) -> String {
        let (id, now) = (Base64URL.random(byteCount: 32), now())
        let session = Session(email: email, token: Base64URL.random(byteCount: 32), begun: now, used: now, minute: now)
        sessions.withLock { sessions in
            sessions = sessions.filter { isGood($0.value, now) }
            if sessions.count >= Self.countMax, let oldest = sessions.min(by: { $0.value.used < $1.value.used }) {
                sessions[oldest.key] = nil
            }
            sessions[Self.key(id)] = session
        }
        return id
    }

    /// The session with this id, which is used now.
    ///
    /// - Parameter isAutomatic: The page asks by itself: a session of which nobody does anything becomes idle.
    func use(_ id: String, isAutomatic: Bool = false) -> Found {
        let (key, now) = (Self.key(id), now())
        return sessions.withLock { sessions in
            guard var session = sessions[key] else { return .none }
            guard isGood(session, now) else {
                sessions[key] = nil
                return .none
            }
            if !isAutomatic { session.used = now }
            if now - session.minute >= .seconds(60) { (session.minute, session.requestCount) = (now, 0) }
            session.requestCount += 1
            sessions[key] = session
            return session.requestCount > Self.requestCountMax ? .busy : .session(session)
        }
    }

    func end(_ id: String) { sessions.withLock { _ = $0.removeValue(forKey: Self.key(id)) } }

    private func isGood(_ session: Session, _ now: ContinuousClock.Instant) -> Bool {
        now - session.begun < ageMax && now - session.used < idleMax
    }

    private static func key(_ id: String) -> SHA256Digest { SHA256.hash(data: Array(id.utf8)) }
}
