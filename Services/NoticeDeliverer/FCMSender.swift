import Deliveries
import Essentials

/// The service account of an environment with its access token, which all concurrent deliveries share.
actor FCMSender {
    /// An access token, or the outcome of the deliveries that need one.
    enum AccessToken: Sendable {
        case token(String, lifetime: Duration)
        case unavailable(Outcome)
    }

    let account: FCMAccount
    private var current: (text: String, until: Timestamp)?
    private var request: Task<AccessToken, Never>?

    /// Time before its expiry at which a token is replaced.
    private static let reserve = Duration.seconds(300)

    init(_ account: FCMAccount) { self.account = account }

    /// Returns the current token. If there is none, one request gets it for all callers.
    func token(
        at now: Timestamp, _ fetch: @escaping @Sendable (FCMAccount) async -> AccessToken
    ) async -> AccessToken {
        if let current, now < current.until { return .token(current.text, lifetime: .zero) }
        if let request { return await request.value }
        let task = Task { [account] in await fetch(account) }
        request = task
        let token = await task.value
        request = nil
        if case .token(let text, let lifetime) = token { current = (text, now.adding(lifetime - Self.reserve)) }
        return token
    }

    /// Discards a token that was rejected.
    func discard(_ token: String) {
        if current?.text == token { current = nil }
    }
}
