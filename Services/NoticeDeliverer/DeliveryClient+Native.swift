import BackendHTTP
import Deliveries
import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// Native push messages. The servers are those that the environment names.
extension DeliveryClient {
    /// The sender of an environment's messages through APNs.
    struct AppleSender: Sendable {
        let sender: APNsSender
        let topic: String
        let server: String
    }

    /// The sender of an environment's messages through FCM.
    struct FirebaseSender: Sendable {
        let sender: FCMSender
        let server: String
    }

    func sendNative(to device: DeviceTarget, _ shipment: Shipment) async throws -> Outcome {
        switch device.service {
        case .apns: try await sendAPNs(to: device, shipment)
        case .fcm: try await sendFCM(to: device, shipment)
        }
    }

    // MARK: APNs

    /// A message whose token APNs rejects as expired is sent again with a new token, once.
    private func sendAPNs(to device: DeviceTarget, _ shipment: Shipment) async throws -> Outcome {
        guard let apple, let item = shipment.items.first else {
            return .retry(reason: "no key for APNs is configured", after: nil)
        }
        let body = try NoticeBody.apns(item)
        let end = ContinuousClock.now + callMax
        var isRepeated = false
        while true {
            let token = try apple.sender.token(at: now())
            let request = nativeRequest(
                apple.server + "/3/device/" + device.token,
                headers: [
                    ("authorization", "bearer " + token), ("apns-topic", apple.topic), ("apns-push-type", "alert"),
                    ("apns-id", shipment.id.text), ("apns-collapse-id", Self.topic(shipment.id)),
                    ("apns-expiration", "\(shipment.expiresAt.millisecondsSinceEpoch / 1_000)"),
                    ("apns-priority", "10"), ("content-type", "application/json"),
                ], body, until: end)
            let reply: Reply
            do throws(HTTPError) {
                reply = try await self.reply(to: request, by: namedHostClient)
            } catch {
                return .retry(reason: error.message, after: nil)
            }
            guard APNsRule.isTokenExpired(reply), !isRepeated, apple.sender.discard(token, at: now()) else {
                return APNsRule.outcome(reply)
            }
            isRepeated = true
        }
    }

    // MARK: FCM

    /// A message whose access token FCM rejects is sent again with a new token, once.
    private func sendFCM(to device: DeviceTarget, _ shipment: Shipment) async throws -> Outcome {
        guard let firebase, let item = shipment.items.first else {
            return .retry(reason: "no service account for FCM is configured", after: nil)
        }
        let body = try NoticeBody.fcm(
            item, to: device.token, collapseID: Self.topic(shipment.id), from: now(), until: shipment.expiresAt)
        let url = firebase.server + "/v1/projects/\(firebase.sender.account.project)/messages:send"
        let end = ContinuousClock.now + callMax
        var isRepeated = false
        while true {
            let token: String
            switch await firebase.sender.token(at: now(), { await fetchToken(of: $0, until: end) }) {
            case .token(let text, _): token = text
            case .unavailable(let outcome): return outcome
            }
            let headers: [(name: String, value: String)] = [
                ("authorization", "Bearer " + token), ("content-type", "application/json"),
            ]
            let request = nativeRequest(url, headers: headers, body, until: end)
            let reply: Reply
            do throws(HTTPError) {
                reply = try await self.reply(to: request, by: namedHostClient)
            } catch {
                return .retry(reason: error.message, after: nil)
            }
            guard FCMRule.isTokenRejected(reply), !isRepeated else { return FCMRule.outcome(reply) }
            await firebase.sender.discard(token)
            isRepeated = true
        }
    }

    /// Requests an access token for a service account.
    private func fetchToken(
        of account: FCMAccount, until end: ContinuousClock.Instant
    ) async -> FCMSender.AccessToken {
        struct Granted: Decodable {
            let access_token: String
            let expires_in: Int
        }
        guard let fields = try? account.tokenRequest(at: now()) else {
            return .unavailable(.retry(reason: "the key of the service account for FCM cannot sign", after: nil))
        }
        let request = nativeRequest(
            account.tokenURL, headers: [("content-type", "application/x-www-form-urlencoded")],
            Array(fields.encoded.utf8), until: end)
        do throws(HTTPError) {
            let reply = try await reply(to: request, by: namedHostClient)
            guard reply.status == 200, let granted = BackendResponse.decoded(Granted.self, from: reply.body) else {
                return .unavailable(FCMRule.outcome(ofTokenRequest: reply))
            }
            return .token(
                granted.access_token, lifetime: .seconds(min(max(granted.expires_in, 0), Self.tokenSecondsMax)))
        } catch {
            return .unavailable(.retry(reason: "no access token for FCM: \(error.message)", after: nil))
        }
    }

    /// Limit on the lifetime of an access token; Google grants an hour.
    private static let tokenSecondsMax = 86_400

    /// - Parameter end: The end of ``callMax``, which all requests for a message share: the lease of a person's key is
    ///   only a little longer.
    private func nativeRequest(
        _ url: String, headers: [(name: String, value: String)], _ body: [UInt8], until end: ContinuousClock.Instant
    ) -> Request {
        // Zero would mean no timeout.
        let left = max(end - ContinuousClock.now, .milliseconds(1))
        return Request(
            "POST", url, headers: headers, body: body, connectMax: left, totalMax: left,
            responseBytesMax: Self.responseBytesMax)
    }
}
