import Essentials
import FoundationEssentials
import Testing

@testable import Deliveries

@Suite struct WebhookSignatureTests {
    private let time = Timestamp(millisecondsSinceEpoch: 1_614_265_330_500)

    /// The test vector of the Standard Webhooks libraries.
    @Test func signatureMatchesExampleOfStandardWebhooks() throws {
        let signature = try #require(WebhookSignature(secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let headers = signature.headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: time, body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(
            headers.map { "\($0.name): \($0.value)" } == [
                "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp: 1614265330",
                "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ])
    }

    @Test func signatureDependsOnSecretIDTimeAndBody() throws {
        let secrets = [WebhookSignature.newSecret(), WebhookSignature.newSecret()]
        #expect(secrets[0] != secrets[1])
        var values: Set<String> = []
        for secret in secrets {
            let signature = try #require(WebhookSignature(secret: secret))
            for (id, seconds, body) in [("a", 0, "x"), ("b", 0, "x"), ("a", 1, "x"), ("a", 0, "y")] {
                let at = Timestamp(millisecondsSinceEpoch: time.millisecondsSinceEpoch + Int64(seconds) * 1_000)
                values.insert(signature.headers(id: id, at: at, body: Array(body.utf8))[2].value)
            }
        }
        #expect(values.count == 8)
    }

    @Test(arguments: [
        "", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_not base64 at all, of no length",
        "whsec_" + String(repeating: "A", count: 88),
    ]) func invalidSecretIsRejected(text: String) { #expect(WebhookSignature(secret: text) == nil) }
}
