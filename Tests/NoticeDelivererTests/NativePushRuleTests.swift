import TestSupport
import Testing

@testable import NoticeDeliverer

/// The vendors' error tables, and responses that are in none of them.
@Suite(.ownThreads) struct NativePushRuleTests {
    private enum Effect: Equatable { case delivered, retried, refused, expired }

    private func effect(_ outcome: Outcome) -> Effect {
        switch outcome {
        case .delivered: .delivered
        case .retry: .retried
        case .refused: .refused
        case .expired: .expired
        }
    }

    private func apple(_ status: Int, _ body: String) -> Effect {
        effect(APNsRule.outcome(Reply(status: status, body: Array(body.utf8))))
    }

    private func google(_ status: Int, _ body: String) -> Effect {
        effect(FCMRule.outcome(Reply(status: status, body: Array(body.utf8))))
    }

    private static func failure(_ status: String, _ code: String?, field: String? = nil) -> String {
        let violation = field.map { #", "fieldViolations": [{"field": "\#($0)", "description": "d"}]"# } ?? ""
        let details =
            code.map { #", "details": [{"@type": "x"\#(violation)}, {"@type": "y", "errorCode": "\#($0)"}]"# } ?? ""
        return #"{"error": {"code": 1, "message": "m", "status": "\#(status)"\#(details)}}"#
    }

    @Test func reasonsOfAPNsMapToOutcomes() {
        #expect(apple(200, "") == .delivered)
        for (status, reason) in [(410, "Unregistered"), (410, "ExpiredToken"), (400, "BadDeviceToken")] {
            #expect(apple(status, #"{"reason": "\#(reason)"}"#) == .expired, "\(reason)")
        }
        // What an operator corrects, and what passes.
        for (status, reason) in [
            (403, "ExpiredProviderToken"), (403, "InvalidProviderToken"), (403, "Forbidden"), (400, "TopicDisallowed"),
            (400, "DeviceTokenNotForTopic"), (429, "TooManyRequests"), (429, "TooManyProviderTokenUpdates"),
            (500, "InternalServerError"), (503, "ServiceUnavailable"), (503, "Shutdown"),
        ] {
            #expect(apple(status, #"{"reason": "\#(reason)"}"#) == .retried, "\(reason)")
        }
        for (status, reason) in [
            (400, "BadCollapseId"), (400, "PayloadEmpty"), (404, "BadPath"), (405, "MethodNotAllowed"),
            (413, "PayloadTooLarge"),
        ] {
            #expect(apple(status, #"{"reason": "\#(reason)"}"#) == .refused, "\(reason)")
        }
    }

    @Test func codesOfFCMMapToOutcomes() {
        #expect(google(200, #"{"name": "projects/p/messages/1"}"#) == .delivered)
        #expect(google(404, Self.failure("NOT_FOUND", "UNREGISTERED")) == .expired)
        #expect(google(403, Self.failure("PERMISSION_DENIED", "SENDER_ID_MISMATCH")) == .expired)
        for (status, code) in [
            (429, "QUOTA_EXCEEDED"), (503, "UNAVAILABLE"), (500, "INTERNAL"), (401, "THIRD_PARTY_AUTH_ERROR"),
            (401, nil), (403, nil), (404, nil),
        ] {
            #expect(google(status, Self.failure("X", code)) == .retried, "\(status) \(code ?? "")")
        }
        // A malformed token; otherwise the message is.
        let invalid = "INVALID_ARGUMENT"
        #expect(google(400, Self.failure(invalid, invalid)) == .expired)
        #expect(google(400, Self.failure(invalid, invalid, field: "message.token")) == .expired)
        #expect(google(400, Self.failure(invalid, invalid, field: "message.data[0].value")) == .refused)
        #expect(google(400, Self.failure(invalid, nil)) == .refused)
        let wait = FCMRule.outcome(Reply(status: 429, body: Array(Self.failure("X", "QUOTA_EXCEEDED").utf8)))
        #expect(wait == .retry(reason: "FCM returned 429 QUOTA_EXCEEDED", after: .seconds(60)))
    }

    /// A rejected access token is replaced; the error of the project's key for APNs is not about it.
    @Test func rejectedTokensAreRecognized() {
        func reply(_ status: Int, _ body: String) -> Reply { Reply(status: status, body: Array(body.utf8)) }
        #expect(FCMRule.isTokenRejected(reply(401, Self.failure("UNAUTHENTICATED", nil))))
        #expect(FCMRule.isTokenRejected(reply(401, "")))
        #expect(!FCMRule.isTokenRejected(reply(401, Self.failure("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"))))
        #expect(APNsRule.isTokenExpired(reply(403, #"{"reason": "ExpiredProviderToken"}"#)))
        #expect(!APNsRule.isTokenExpired(reply(403, #"{"reason": "InvalidProviderToken"}"#)))
    }

    /// A proxy's page, a truncated body or a hostile reason ends no device, and reaches no log.
    @Test(arguments: ["", "<html>", "{", "[]", #"{"reason": 7}"#, #"{"reason": "a b\nc", "error": "x"}"#, "null"])
    func unknownBodiesAreNotTrusted(body: String) {
        for (status, expected) in [(400, Effect.refused), (403, .retried), (500, .retried), (301, .refused)] {
            #expect(apple(status, body) == expected && google(status, body) == expected, "\(status)")
        }
        let outcome = APNsRule.outcome(Reply(status: 500, body: Array(body.utf8)))
        #expect(outcome == .retry(reason: "APNs returned 500", after: nil))
    }
}
