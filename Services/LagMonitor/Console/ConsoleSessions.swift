import Crypto
import Essentials
import Synchronization

/// The sessions of the console, in memory only: a restart ends them.
final class ConsoleSessions: Sendable {
    /// A session of an administrator.
    struct Session: Sendable, Equatable {
        /// The administrator's e-mail address.
        let email: String
        /// The token that requests which change data must repeat in a header.
        let token: String
        fileprivate let createdAt: ContinuousClock.Instant
        fileprivate var usedAt: ContinuousClock.Instant
        fileprivate var windowStart: ContinuousClock.Instant
        fileprivate var requestCount = 0
    }

    /// The result of looking up a request's session.
    enum Lookup: Sendable, Equatable {
        case session(Session)
        /// The session does not exist or has expired.
        case none
        /// The session exceeds ``requestCountMax`` per minute.
        case busy
    }

    /// The limit of sessions; a new one replaces the least recently used.
    static let countMax = 200
    /// The limit of requests per session and minute.
    static let requestCountMax = 600

    private let ageMax: Duration
    private let idleMax: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    /// Sessions by the SHA-256 of their id, so that neither timing nor this memory reveals ids.
    private let sessions = Mutex<[SHA256Digest: Session]>([:])

    init(ageMax: Duration, idleMax: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        (self.ageMax, self.idleMax, self.now) = (ageMax, idleMax, now)
    }

    var count: Int { sessions.withLock { $0.count } }

    /// Creates a session.
    ///
    /// - Returns: The session id for the cookie: 256 random bits.
    func create(_ email: String) -> String {
        let (id, now) = (Base64URL.random(byteCount: 32), now())
        let session = Session(
            email: email, token: Base64URL.random(byteCount: 32), createdAt: now, usedAt: now, windowStart: now)
        sessions.withLock { sessions in
            sessions = sessions.filter { isValid($0.value, now) }
            if sessions.count >= Self.countMax, let oldest = sessions.min(by: { $0.value.usedAt < $1.value.usedAt }) {
                sessions[oldest.key] = nil
            }
            sessions[Self.key(id)] = session
        }
        return id
    }

    /// Looks up a session and counts the request.
    ///
    /// - Parameter isAutomatic: Whether it is an automatic refresh, which does not count as activity.
    func use(_ id: String, isAutomatic: Bool = false) -> Lookup {
        let (key, now) = (Self.key(id), now())
        return sessions.withLock { sessions in
            guard var session = sessions[key] else { return .none }
            guard isValid(session, now) else {
                sessions[key] = nil
                return .none
            }
            if !isAutomatic { session.usedAt = now }
            if now - session.windowStart >= .seconds(60) { (session.windowStart, session.requestCount) = (now, 0) }
            session.requestCount += 1
            sessions[key] = session
            return session.requestCount > Self.requestCountMax ? .busy : .session(session)
        }
    }

    func end(_ id: String) { sessions.withLock { _ = $0.removeValue(forKey: Self.key(id)) } }

    private func isValid(_ session: Session, _ now: ContinuousClock.Instant) -> Bool {
        now - session.createdAt < ageMax && now - session.usedAt < idleMax
    }

    private static func key(_ id: String) -> SHA256Digest { SHA256.hash(data: Array(id.utf8)) }
}
