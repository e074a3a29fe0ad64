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
                ], body)
            let reply: Reply
            do throws(HTTPError) {
                reply = try await self.reply(to: request, by: namedHostClient)
            } catch {
                return OutcomeRule.ofFailure(error.message, isPrivate: error.isPrivate)
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
        var isRepeated = false
        while true {
            let token: String
            switch await firebase.sender.token(at: now(), { await fetchToken(of: $0) }) {
            case .token(let text, _): token = text
            case .unavailable(let outcome): return outcome
            }
            let headers: [(name: String, value: String)] = [
                ("authorization", "Bearer " + token), ("content-type", "application/json"),
            ]
            let reply: Reply
            do throws(HTTPError) {
                reply = try await self.reply(to: nativeRequest(url, headers: headers, body), by: namedHostClient)
            } catch {
                return OutcomeRule.ofFailure(error.message, isPrivate: error.isPrivate)
            }
            guard FCMRule.isTokenRejected(reply), !isRepeated else { return FCMRule.outcome(reply) }
            await firebase.sender.discard(token)
            isRepeated = true
        }
    }

    /// Requests an access token for a service account.
    private func fetchToken(of account: FCMAccount) async -> FCMSender.AccessToken {
        struct Granted: Decodable {
            let access_token: String
            let expires_in: Int
        }
        guard let fields = try? account.tokenRequest(at: now()) else {
            return .unavailable(.retry(reason: "the key of the service account for FCM cannot sign", after: nil))
        }
        let request = nativeRequest(
            account.tokenURL, headers: [("content-type", "application/x-www-form-urlencoded")],
            Array(fields.encoded.utf8))
        do throws(HTTPError) {
            let reply = try await reply(to: request, by: namedHostClient)
            guard reply.status == 200, let granted = BackendResponse.decoded(Granted.self, from: reply.body) else {
                return .unavailable(FCMRule.outcome(ofTokenRequest: reply))
            }
            return .token(granted.access_token, lifetime: .seconds(granted.expires_in))
        } catch {
            return .unavailable(OutcomeRule.ofFailure(error.message, isPrivate: false))
        }
    }

    private func nativeRequest(_ url: String, headers: [(name: String, value: String)], _ body: [UInt8]) -> Request {
        Request(
            "POST", url, headers: headers, body: body, connectMax: callMax, totalMax: callMax,
            responseBytesMax: Self.responseBytesMax)
    }
}
