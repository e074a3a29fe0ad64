import BackendHTTP
import Deliveries
import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// Carries one environment's notices. It never throws: what went wrong is an outcome.
struct Courier: Sendable {
    /// How e-mails leave.
    struct Post: Sendable {
        let server: String
        let login: (user: String, password: String)?
        let sender: String
    }

    /// Calls what people name freely: addresses of the public Internet only.
    let open: Client
    /// Calls the hosts that the environment names.
    let named: Client
    /// Those hosts.
    let namedHosts: [String]
    let mail: MailClient
    let callMax: Duration
    let metrics: DeliveryMetrics
    let now: @Sendable () -> Timestamp
    var signature: WebhookSignature?
    var post: Post?
    var sender: PushSender?

    /// What is read of an answer: only its status counts.
    private static let answerBytesMax = 64 * 1024

    /// Sends all at the same time; each is bounded by itself.
    func send(_ dispatch: Dispatch) async -> DispatchAnswer {
        await withTaskGroup(of: (Shipment, Outcome).self) { group in
            for shipment in dispatch.shipments { group.addTask { (shipment, await send(shipment)) } }
            var outcomes: [(shipment: Shipment, outcome: Outcome)] = []
            for await (shipment, outcome) in group { outcomes.append((shipment, outcome)) }
            return DispatchAnswer(outcomes: outcomes)
        }
    }

    func send(_ shipment: Shipment) async -> Outcome {
        let outcome: Outcome
        do {
            switch shipment.target {
            case .webhook(let address): outcome = try await call(address, with: shipment)
            case .email(let address): outcome = await write(to: address, shipment)
            case .push(let browser): outcome = try await push(to: browser, shipment)
            }
        } catch {
            outcome = .refused(reason: "it cannot be written: \(error)")
        }
        if case .retry = outcome { metrics.count(shipment.target.way, .failed) }
        return outcome
    }

    // MARK: Webhooks

    private func call(_ address: SecureAddress, with shipment: Shipment) async throws -> Outcome {
        guard let signature, let item = shipment.items.first else {
            return .retry(reason: "there is no secret to sign webhooks with", after: nil)
        }
        let body = try NoticeBody.webhook(item)
        let headers = signature.headers(id: shipment.id.text, at: now(), body: body)
        return await answer(
            to: Request(
                "POST", address.text, headers: headers + [("content-type", "application/json")], body: body,
                connectMax: callMax, totalMax: callMax, answerBytesMax: Self.answerBytesMax), OutcomeRule.ofWebhook)
    }

    private func answer(to request: Request, _ rule: (Int, Duration?) -> Outcome) async -> Outcome {
        do throws(HTTPError) {
            let response = try await client(for: request.url).send(request)
            return rule(response.status, HTTPAnswer.retryAfter(of: response))
        } catch {
            // An answer that is too long is one.
            if let status = error.status { return rule(status, nil) }
            return OutcomeRule.ofNoAnswer(error.message, isPrivate: error.isPrivate)
        }
    }

    private func client(for address: String) -> Client {
        let host = SecureAddress(address)?.host ?? ""
        return namedHosts.contains(host) ? named : open
    }

    // MARK: E-mail

    private func write(to address: String, _ shipment: Shipment) async -> Outcome {
        guard let post else { return .retry(reason: "there is no mail server", after: nil) }
        let message = MailMessage(
            id: shipment.id, from: post.sender, to: address, date: now(), items: shipment.items.map(\.notice))
        do throws(HTTPError) {
            try await mail.send(
                Mail(
                    server: post.server, login: post.login, sender: post.sender, recipients: [address],
                    message: message.bytes, connectMax: callMax, totalMax: callMax))
            return .delivered
        } catch {
            return OutcomeRule.ofMail(error.status, isAboutMail: error.outcome == .maybeSent, reason: error.message)
        }
    }

    // MARK: Web push

    private func push(to browser: PushTarget, _ shipment: Shipment) async throws -> Outcome {
        guard let sender, let item = shipment.items.first else {
            return .retry(reason: "there is no key for push services", after: nil)
        }
        let subscription: PushSubscription
        do throws(PushSubscription.Malformed) {
            subscription = try PushSubscription(
                endpoint: browser.endpoint, p256dh: browser.p256dh, auth: browser.auth)
        } catch {
            return .gone(reason: error.description)
        }
        guard let body = PushMessage.body(of: try NoticeBody.push(item), to: subscription) else {
            return .refused(reason: "it is too long for a push service")
        }
        let time = now()
        let left = max(0, (shipment.expiresAt.millisecondsSinceEpoch - time.millisecondsSinceEpoch) / 1_000)
        let headers = [
            ("authorization", try sender.authorization(for: subscription.origin, at: time)), ("ttl", "\(left)"),
            ("urgency", "normal"), ("topic", Self.topic(shipment.id)), ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"),
        ]
        return await answer(
            to: Request(
                "POST", browser.endpoint, headers: headers, body: body, connectMax: callMax, totalMax: callMax,
                answerBytesMax: Self.answerBytesMax), OutcomeRule.ofPush)
    }

    /// A message replaces an earlier one of the same topic that was not fetched yet: so one that is sent again is shown
    /// once. At most 32 letters (RFC 8030, 5.4).
    static func topic(_ id: UUID) -> String {
        unsafe withUnsafeBytes(of: id.uuid) { bytes in Base64URL.text(unsafe Array(bytes)) }
    }
}
