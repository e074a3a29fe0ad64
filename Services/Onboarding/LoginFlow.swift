import Access
import Audit
import Essentials
import Identity
import Logging
import Model
import Postgres
import Tenants

/// Completes a login after the provider has redirected the browser back.
struct LoginFlow: Sendable {
    /// The page to display.
    enum Page: Sendable {
        case done
        /// Confirmation that the device belongs to the person.
        case confirm(Capability, email: String, device: String, address: String)
        case problem(LoginProblem, retryURL: String?)
        /// The login is complete, was used before, or does not exist.
        case linkInvalid
        case tooMany
    }

    let store: SessionStore
    let pool: Pool
    let limits: OnboardingLimits
    /// The redirect URL for providers.
    let redirect: String
    let provider: OpenIDProvider
    let providers: ProviderDirectory
    let check: TokenCheck
    let changes: SessionChanges
    let logger: Logger

    private var events: EventStore { EventStore(secrets: store.secrets) }

    /// Handles the provider's redirect.
    func finish(_ fields: FormFields, from browser: String) async throws -> Page {
        guard let state = fields["state"].flatMap({ Capability($0) }) else { return try await rejectGuess(browser) }
        guard let pending = try await pool.run({ [store] in try store.consume(state, on: &$0) }) else {
            return try await retryInterrupted(state, browser)
        }
        do {
            let (accepted, tokens) = try await exchange(fields, pending)
            if needsConfirmation(pending, browser) {
                return try await requestConfirmation(state, pending, tokens, accepted)
            }
            return try await complete(pending, accepted, tokens, browser)
        } catch let problem as LoginProblem {
            return try await fail(pending, problem, browser)
        }
    }

    /// Offers a retry for an interrupted attempt; a state that does not exist counts as a guess.
    private func retryInterrupted(_ state: Capability, _ browser: String) async throws -> Page {
        let interrupted = try await pool.run { [store] connection in
            try store.consumeInterrupted(state, on: &connection)
        }
        guard let interrupted else { return try await rejectGuess(browser) }
        return try await fail(interrupted, .interrupted, browser)
    }

    private func rejectGuess(_ browser: String) async throws -> Page {
        let isWithin = try await pool.run { [limits] connection in
            try RateLimiter.count(RateLimiter.key(guessesOf: browser, limits), on: &connection)
        }
        logger.info("unknown login state", metadata: ["address": "\(browser)"])
        return isWithin ? .linkInvalid : .tooMany
    }

    private func exchange(
        _ fields: FormFields, _ pending: SessionStore.PendingLogin
    ) async throws -> (TokenCheck.Accepted, ProviderTokens) {
        let organisation = pending.organisation
        do {
            let metadata = try await providers.metadata(of: organisation.issuer, at: organisation.discoveryURL)
            let code = try LoginRule.code(
                in: fields, issuer: organisation.issuer, namesIssuer: metadata.namesIssuer)
            let tokens = try await provider.exchange(
                code, verifier: try store.verifier(of: pending), redirect: redirect, as: organisation.client,
                at: metadata)
            return (try await check.accept(tokens, for: pending, metadata), tokens)
        } catch let failure as ProviderFailure {
            throw LoginRule.problem(failure)
        }
    }

    // MARK: Confirmation

    private func needsConfirmation(_ pending: SessionStore.PendingLogin, _ browser: String) -> Bool {
        switch limits.confirm {
        case .never: false
        case .always: true
        case .different: browser != pending.deviceAddress
        }
    }

    /// Requests confirmation before the device gets access: an attacker with a session can send its login URL to a
    /// victim.
    private func requestConfirmation(
        _ state: Capability, _ pending: SessionStore.PendingLogin, _ tokens: ProviderTokens,
        _ accepted: TokenCheck.Accepted
    ) async throws -> Page {
        let confirm = Capability()
        try await pool.runWithRetry(limits.retryMax) { [store] connection in
            _ = try connection.run(try store.storeTokens(tokens, for: state, confirm: confirm))
        }
        return .confirm(
            confirm, email: pending.email.description, device: pending.deviceName, address: pending.deviceAddress)
    }

    /// Handles the person's decision.
    func confirm(_ fields: FormFields, from browser: String) async throws -> Page {
        guard let confirm = fields["confirm"].flatMap({ Capability($0) }) else { return try await rejectGuess(browser) }
        let confirmed = try await pool.run { [store] in try store.consumeConfirmed(confirm, on: &$0) }
        guard let (pending, tokens) = confirmed else { return try await rejectGuess(browser) }
        do {
            guard fields["decision"] == "yes" else { throw LoginProblem.notConfirmed }
            let organisation = pending.organisation
            let metadata: ProviderMetadata
            do {
                metadata = try await providers.metadata(of: organisation.issuer, at: organisation.discoveryURL)
            } catch {
                throw LoginRule.problem(error)
            }
            return try await complete(pending, try await check.accept(tokens, for: pending, metadata), tokens, browser)
        } catch let problem as LoginProblem {
            return try await fail(pending, problem, browser)
        }
    }

    // MARK: Outcomes

    private func complete(
        _ pending: SessionStore.PendingLogin, _ accepted: TokenCheck.Accepted, _ tokens: ProviderTokens,
        _ browser: String
    ) async throws -> Page {
        let device = tokens.refreshToken.map {
            SessionStore.NewDevice(refreshToken: $0, credential: DeviceCredential(by: SecretIssuer(store.secrets)))
        }
        let event = DeviceEvent.token(
            access: accepted.token, expires: accepted.expires, credential: device?.credential)
        let isStored: Bool
        do {
            isStored = try await pool.runWithRetry(limits.retryMax) { [store, events] connection in
                // The address belongs to this environment, explicitly or by its domain: its verified owner may join.
                let person = try PersonBinding.person(
                    accepted.identity, email: pending.email.description, mayJoin: true, from: browser, on: &connection)
                try LoginName.apply(accepted.identity, of: person, on: &connection)
                return try store.complete(
                    pending, person: person, token: EventStore.NewEvent(session: pending.session, event: event),
                    identity: accepted.identity, device: device, from: browser, events: events, on: &connection)
            }
        } catch is BindingRefusal {
            throw LoginProblem.boundElsewhere
        }
        guard isStored else { return .linkInvalid }
        changes.signal()
        logger.info("login completed", metadata: ["environment": "\(pending.organisation.environment)"])
        return .done
    }

    /// Reports the failure to the device and the person, with the URL of a new attempt if that may help.
    private func fail(
        _ pending: SessionStore.PendingLogin, _ problem: LoginProblem, _ browser: String
    ) async throws -> Page {
        var reason = problem.code
        if case .tokenRefused(let text) = problem { reason += ": \(text)" }
        if case .providerError(let text) = problem { reason += ": \(text)" }
        if case .emailUnverified(let text) = problem { reason += ": \(text)" }
        logger.info(
            "login failed", metadata: ["environment": "\(pending.organisation.environment)", "reason": "\(reason)"])
        var retry: (attempt: AuthorizationRequest, url: String)?
        if problem.mayRetry,
            let metadata = try? await providers.metadata(
                of: pending.organisation.issuer, at: pending.organisation.discoveryURL)
        {
            let attempt = AuthorizationRequest()
            retry = (attempt, attempt.url(pending.organisation, metadata, pending.email, redirect: redirect))
        }
        let url = try await pool.runWithRetry(limits.retryMax) { [store, events, retry] connection in
            var url: String?
            if let retry, try connection.run(try store.add(retry.attempt, to: pending.session)).affectedCount == 1 {
                url = retry.url
            }
            let event = DeviceEvent.error(problem, retryURL: url)
            let record = pending.record(
                .loginFailed, actor: pending.email.description, browser: browser, problem: problem)
            try connection.run(
                [SessionStore.end(pending), AuditRecord.insert([record], in: pending.organisation.environment)]
                    + events.append([EventStore.NewEvent(session: pending.session, event: event)]))
            return url
        }
        return .problem(problem, retryURL: url)
    }
}
