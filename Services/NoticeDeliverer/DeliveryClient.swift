import BackendHTTP
import Deliveries
import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// Delivers one environment's notices. It never throws: an error is an outcome.
struct DeliveryClient: Sendable {
    /// The mail server and sender of an environment.
    struct MailAccount: Sendable {
        let server: String
        let login: (user: String, password: String)?
        let sender: String
    }

    /// Calls addresses that people choose: public Internet addresses only.
    let publicClient: Client
    /// Calls the hosts that the environment names.
    let namedHostClient: Client
    /// The hosts that the environment names.
    let namedHosts: [String]
    let mail: MailClient
    let callMax: Duration
    let metrics: DeliveryMetrics
    let now: @Sendable () -> Timestamp
    var signature: WebhookSignature?
    var mailAccount: MailAccount?
    var sender: PushSender?
    var apple: AppleSender?
    var firebase: FirebaseSender?

    /// Limit on the bytes read of a response, of which little matters.
    static let responseBytesMax = 64 * 1024

    /// Sends all shipments concurrently, each with its own timeout.
    func send(_ call: DeliveryCall) async -> DeliveryCallResult {
        await withTaskGroup(of: (Shipment, Outcome).self) { group in
            for shipment in call.shipments { group.addTask { (shipment, await send(shipment)) } }
            var outcomes: [(shipment: Shipment, outcome: Outcome)] = []
            for await (shipment, outcome) in group { outcomes.append((shipment, outcome)) }
            return DeliveryCallResult(outcomes: outcomes)
        }
    }

    func send(_ shipment: Shipment) async -> Outcome {
        let outcome: Outcome
        do {
            switch shipment.target {
            case .webhook(let address): outcome = try await sendWebhook(to: address, shipment)
            case .email(let address): outcome = await sendMail(to: address, shipment)
            case .push(let browser): outcome = try await sendPush(to: browser, shipment)
            case .device(let device): outcome = try await sendNative(to: device, shipment)
            }
        } catch {
            outcome = .refused(reason: "cannot encode the message: \(error)")
        }
        if case .retry = outcome { metrics.count(shipment.target.channel, .failed) }
        return outcome
    }

    // MARK: Webhooks

    private func sendWebhook(to address: SecureAddress, _ shipment: Shipment) async throws -> Outcome {
        guard let signature, let item = shipment.items.first else {
            return .retry(reason: "no secret to sign webhooks is configured", after: nil)
        }
        let body = try NoticeBody.webhook(item)
        let headers = signature.headers(id: shipment.id.text, at: now(), body: body)
        return await send(
            Request(
                "POST", address.text, headers: headers + [("content-type", "application/json")], body: body,
                connectMax: callMax, totalMax: callMax, responseBytesMax: Self.responseBytesMax), OutcomeRule.ofWebhook)
    }

    private func send(_ request: Request, _ rule: (Int, Duration?) -> Outcome) async -> Outcome {
        do throws(HTTPError) {
            let reply = try await reply(to: request, by: client(for: request.url))
            return rule(reply.status, reply.retryAfter)
        } catch {
            return OutcomeRule.ofFailure(error.message, isPrivate: error.isPrivate)
        }
    }

    func reply(to request: Request, by client: Client) async throws(HTTPError) -> Reply {
        do throws(HTTPError) {
            let response = try await client.send(request)
            return Reply(
                status: response.status, retryAfter: BackendResponse.retryAfter(of: response), body: response.body)
        } catch {
            // A response above the limit has a status, too.
            guard let status = error.status else { throw error }
            return Reply(status: status)
        }
    }

    private func client(for address: String) -> Client {
        let host = SecureAddress(address)?.host ?? ""
        return namedHosts.contains(host) ? namedHostClient : publicClient
    }

    // MARK: E-mail

    private func sendMail(to address: String, _ shipment: Shipment) async -> Outcome {
        guard let mailAccount else { return .retry(reason: "no mail server is configured", after: nil) }
        let message = MailMessage(
            id: shipment.id, from: mailAccount.sender, to: address, date: now(), items: shipment.items.map(\.notice))
        do throws(HTTPError) {
            try await mail.send(
                Mail(
                    server: mailAccount.server, login: mailAccount.login, sender: mailAccount.sender,
                    recipients: [address], message: message.bytes, connectMax: callMax, totalMax: callMax))
            return .delivered
        } catch {
            return OutcomeRule.ofMail(error.status, isMailRejection: error.outcome == .maybeSent, reason: error.message)
        }
    }

    // MARK: Web push

    private func sendPush(to browser: PushTarget, _ shipment: Shipment) async throws -> Outcome {
        guard let sender, let item = shipment.items.first else {
            return .retry(reason: "no key for push services is configured", after: nil)
        }
        let subscription: PushSubscription
        do throws(PushSubscription.FormatError) {
            subscription = try PushSubscription(
                endpoint: browser.endpoint, p256dh: browser.p256dh, auth: browser.auth)
        } catch {
            return .expired(reason: error.description)
        }
        guard let body = PushMessage.body(of: try NoticeBody.push(item), to: subscription) else {
            return .refused(reason: "the notice is too long for a push service")
        }
        let time = now()
        let left = max(0, (shipment.expiresAt.millisecondsSinceEpoch - time.millisecondsSinceEpoch) / 1_000)
        let headers = [
            ("authorization", try sender.authorization(for: subscription.origin, at: time)), ("ttl", "\(left)"),
            ("urgency", "normal"), ("topic", Self.topic(shipment.id)), ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"),
        ]
        return await send(
            Request(
                "POST", browser.endpoint, headers: headers, body: body, connectMax: callMax, totalMax: callMax,
                responseBytesMax: Self.responseBytesMax), OutcomeRule.ofPush)
    }

    /// Returns the topic of a push message, its collapse id for native push. A message replaces an undelivered or
    /// displayed one of the same topic, so that a repeated message is shown once. At most 32 letters (RFC 8030, 5.4),
    /// and at most 64 bytes for APNs.
    static func topic(_ id: UUID) -> String {
        unsafe withUnsafeBytes(of: id.uuid) { bytes in Base64URL.text(unsafe Array(bytes)) }
    }
}
