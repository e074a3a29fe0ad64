import Essentials

/// What an answer says of a shipment.
enum OutcomeRule {
    /// A webhook's answer. Redirects are not followed: who receives webhooks says where.
    static func ofWebhook(_ status: Int, retryAfter: Duration?) -> Outcome {
        switch status {
        case 200..<300: .delivered
        case 408, 425, 429, 500...: .retry(reason: "the receiver answers \(status)", after: retryAfter)
        default: .refused(reason: "the receiver answers \(status)")
        }
    }

    /// A push service's answer (RFC 8030, 5 and 7.3): 404 and 410 say that the subscription is over.
    static func ofPush(_ status: Int, retryAfter: Duration?) -> Outcome {
        switch status {
        case 200..<300: .delivered
        case 404, 410: .gone(reason: "the browser has ended its subscription (\(status))")
        case 408, 425, 429, 500...: .retry(reason: "the push service answers \(status)", after: retryAfter)
        default: .refused(reason: "the push service answers \(status)")
        }
    }

    /// A mail server's answer to the e-mail itself: what begins with 5 is for good (RFC 5321, 4.2.1). What went wrong
    /// before, while connecting or at the login, is no word about the e-mail.
    static func ofMail(_ status: Int?, isAboutMail: Bool, reason: String) -> Outcome {
        if isAboutMail, let status, (500..<600).contains(status), !loginStatuses.contains(status) {
            return .refused(reason: "the mail server refuses it: \(reason)")
        }
        return .retry(reason: "the mail server: \(reason)", after: nil)
    }

    /// A server that wants a login, or another one, says so when an e-mail is begun (RFC 4954, 6).
    private static let loginStatuses: Set = [530, 534, 535, 538]

    /// A call that had no answer.
    static func ofNoAnswer(_ reason: String, isPrivate: Bool) -> Outcome {
        isPrivate ? .refused(reason: reason) : .retry(reason: reason, after: nil)
    }
}
