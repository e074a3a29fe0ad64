import Essentials
import FoundationEssentials

/// A receiver's response as the rules need it.
struct Reply: Equatable, Sendable {
    let status: Int
    var retryAfter: Duration?
    /// Empty if it exceeded its limit.
    var body: [UInt8] = []

    /// - Returns: `nil` if the body has another form.
    fileprivate func decoded<Value: Decodable>(as _: Value.Type) -> Value? {
        try? JSONDecoder().decode(Value.self, from: Data(body))
    }
}

/// Maps responses of APNs.
///
/// Source: Apple, "Handling notification responses from APNs".
enum APNsRule {
    static func outcome(_ reply: Reply) -> Outcome {
        let reason = reason(of: reply)
        let text = "APNs returned \(reply.status)" + (reason.isEmpty ? "" : " \(reason)")
        switch reply.status {
        case 200: return .delivered
        case 410: return .expired(reason: "the app is no longer installed (\(text))")
        case 400 where reason == "BadDeviceToken":
            return .expired(reason: "the device's token is not valid (\(text))")
        // Mistakes of the environment's settings, which an operator corrects: nothing is wrong with the notice.
        case 403: return .retry(reason: text, after: reply.retryAfter)
        case 400 where retriedReasons.contains(reason): return .retry(reason: text, after: reply.retryAfter)
        case 408, 429, 500...: return .retry(reason: text, after: reply.retryAfter)
        default: return .refused(reason: text)
        }
    }

    /// Whether the sender's token was rejected because of its age.
    static func isTokenExpired(_ reply: Reply) -> Bool {
        reply.status == 403 && reason(of: reply) == "ExpiredProviderToken"
    }

    /// Mistakes of the settings, too, and a connection that APNs closed.
    private static let retriedReasons: Set = [
        "BadTopic", "DeviceTokenNotForTopic", "MissingTopic", "TopicDisallowed", "IdleTimeout",
    ]

    private static func reason(of reply: Reply) -> String {
        struct Body: Decodable {
            let reason: String
        }
        return plain(reply.decoded(as: Body.self)?.reason)
    }

    /// Returns a code of a response for a log and a person; empty if it has other characters than a code.
    fileprivate static func plain(_ text: String?) -> String {
        guard let text, text.utf8.count <= 64, text.utf8.allSatisfy({ Base64URL.contains($0) }) else { return "" }
        return text
    }
}

/// Maps responses of FCM and of the server that issues its access tokens.
///
/// Source: Firebase, `ErrorCode` of the FCM v1 API; Google Cloud, "Errors" (`google.rpc.Status`).
enum FCMRule {
    static func outcome(_ reply: Reply) -> Outcome {
        let (code, isTokenInvalid) = failure(of: reply)
        let text = "FCM returned \(reply.status)" + (code.isEmpty ? "" : " \(code)")
        switch (reply.status, code) {
        case (200, _): return .delivered
        case (_, "UNREGISTERED"): return .expired(reason: "the app is no longer installed (\(text))")
        case (_, "SENDER_ID_MISMATCH"): return .expired(reason: "the token belongs to another project (\(text))")
        case (400, _) where isTokenInvalid: return .expired(reason: "the token is not valid (\(text))")
        case (429, _): return .retry(reason: text, after: reply.retryAfter ?? quotaWait)
        // Mistakes of the environment's settings, such as a missing role or project.
        case (401, _), (403, _), (404, _): return .retry(reason: text, after: reply.retryAfter)
        case (408, _), (500..., _): return .retry(reason: text, after: reply.retryAfter)
        default: return .refused(reason: text)
        }
    }

    /// Whether the access token was rejected. `THIRD_PARTY_AUTH_ERROR` concerns the project's own key for APNs.
    static func isTokenRejected(_ reply: Reply) -> Bool {
        reply.status == 401 && failure(of: reply).code != "THIRD_PARTY_AUTH_ERROR"
    }

    /// Maps a response without an access token. Only an operator can correct a rejected account, and may do so.
    static func outcome(ofTokenRequest reply: Reply) -> Outcome {
        struct Body: Decodable {
            let error: String
        }
        let error = APNsRule.plain(reply.decoded(as: Body.self)?.error)
        return .retry(
            reason: "no access token for FCM: \(reply.status)" + (error.isEmpty ? "" : " \(error)"),
            after: reply.retryAfter)
    }

    /// Delay after 429 without `Retry-After`. Source: Firebase, "Best practices when sending FCM messages at scale".
    private static let quotaWait = Duration.seconds(60)

    /// Returns FCM's own error code, or otherwise the general status; and whether the registration token is malformed.
    /// Then FCM returns its own `INVALID_ARGUMENT`, and names no other field than the token.
    private static func failure(of reply: Reply) -> (code: String, isTokenInvalid: Bool) {
        struct Body: Decodable {
            struct Failure: Decodable {
                struct Detail: Decodable {
                    struct Violation: Decodable {
                        let field: String?
                    }
                    let errorCode: String?
                    let fieldViolations: [Violation]?
                }
                let status: String?
                let details: [Detail]?
            }
            let error: Failure
        }
        let failure = reply.decoded(as: Body.self)?.error
        let details = failure?.details ?? []
        let code = details.lazy.compactMap(\.errorCode).first
        let isTokenInvalid =
            code == "INVALID_ARGUMENT"
            && details.flatMap { $0.fieldViolations ?? [] }.allSatisfy { $0.field == "message.token" }
        return (APNsRule.plain(code ?? failure?.status), isTokenInvalid)
    }
}
