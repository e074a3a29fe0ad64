import Essentials
import Model

/// Maps responses to outcomes.
enum OutcomeRule {
    /// Maps a webhook's response. Redirects are not followed: the receiver configures the address.
    static func ofWebhook(_ status: Int, retryAfter: Duration?) -> Outcome {
        switch status {
        case 200..<300: .delivered
        case 408, 425, 429, 500...: .retry(reason: "the receiver returned \(status)", after: retryAfter)
        default: .refused(reason: "the receiver returned \(status)")
        }
    }

    /// Maps a push service's response (RFC 8030, 5 and 7.3): 404 and 410 mean that the subscription has expired.
    static func ofPush(_ status: Int, retryAfter: Duration?) -> Outcome {
        switch status {
        case 200..<300: .delivered
        case 404, 410: .expired(reason: "the browser has ended its subscription (\(status))")
        case 408, 425, 429, 500...: .retry(reason: "the push service returned \(status)", after: retryAfter)
        default: .refused(reason: "the push service returned \(status)")
        }
    }

    /// Maps a mail server's reply to the e-mail itself: 5yz is permanent (RFC 5321, 4.2.1). Errors of the connection or
    /// the login are not about the e-mail.
    static func ofMail(_ status: Int?, isMailRejection: Bool, reason: String) -> Outcome {
        if isMailRejection, let status, (500..<600).contains(status), !loginStatuses.contains(status) {
            return .refused(reason: "the mail server rejected it: \(reason)")
        }
        return .retry(reason: "the mail server: \(reason)", after: nil)
    }

    /// Statuses by which a server requires another login when an e-mail is started (RFC 4954, 6).
    private static let loginStatuses: Set = [530, 534, 535, 538]

    /// Maps a call without a response.
    static func ofFailure(_ reason: String, isPrivate: Bool) -> Outcome {
        isPrivate ? .refused(reason: reason) : .retry(reason: reason, after: nil)
    }
}

/// The backoff of failed deliveries.
enum RetryRule {
    /// Maximum backoff. A receiver may request more.
    static let waitMax = Duration.seconds(3_600)
    /// Maximum of the `Retry-After` that is honoured.
    static let retryAfterMax = Duration.seconds(86_400)

    /// - Parameters:
    ///   - failureCount: Number of consecutive failures including the last one; 1 or more.
    ///   - first: Delay after the first failure.
    ///   - retryAfter: The delay that the receiver requests.
    ///   - jitter: From 0 up to 1: spreads retries of shipments that failed together.
    static func wait(after failureCount: Int, first: Duration, retryAfter: Duration?, jitter: Double) -> Duration {
        let ceiling = min(waitMax, first * (1 << min(max(failureCount - 1, 0), 20)))
        let own = ceiling * (0.5 + 0.5 * min(max(jitter, 0), 1))
        return max(own, min(retryAfter ?? .zero, retryAfterMax))
    }
}

/// The problem that is reported in a person's choice.
enum DeliveryProblemRule {
    /// - Parameters:
    ///   - stored: The currently reported problem.
    ///   - choiceError: The part of the choice that is unavailable.
    ///   - working: Channels that have just worked.
    static func problem(stored: String?, new: String?, choiceError: String?, working: Set<Channel>) -> String? {
        if let new { return new }
        if let choiceError { return choiceError }
        guard let stored, !stored.hasPrefix("choice: "),
            !working.contains(where: { stored.hasPrefix($0.rawValue + ": ") })
        else { return nil }
        return stored
    }
}
