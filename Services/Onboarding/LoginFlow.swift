import Access
import Audit
import Essentials
import FoundationEssentials
import Identity
import Logging
import Model
import ObjectStore
import Postgres

/// Brings a login to its end once the browser comes back from the provider.
struct LoginFlow: Sendable {
    /// What the person is shown.
    enum Page: Sendable {
        case done
        /// Whether the device that waits is theirs.
        case confirm(Capability, email: String, device: String, address: String)
        case problem(LoginProblem, retryURL: String?)
        /// Nothing waits for this login: it is over, was used, or never was.
        case linkNotValid
        case tooMany
    }

    let store: SessionStore
    let pool: Pool
    let limits: OnboardingLimits
    /// The address at which providers send browsers back.
    let redirect: String
    let provider: OpenIDProvider
    let providers: ProviderDirectory
    let check: TokenCheck
    let logger: Logger

    private var events: EventStore { EventStore(secrets: store.secrets) }

    /// The browser is back with the provider's answer.
    func finish(_ fields: FormFields, from browser: String) async throws -> Page {
        guard let state = fields["state"].flatMap({ Capability($0) }) else { return try await guessed(browser) }
        guard let found = try await pool.run({ [store] in try store.take(state, on: &$0) }) else {
            return try await again(state, browser)
        }
        do {
            let (accepted, tokens) = try await exchange(fields, found)
            if needsConfirmation(found, browser) { return try await ask(state, found, tokens, accepted) }
            return try await complete(found, accepted, tokens, browser)
        } catch let problem as LoginProblem {
            return try await fail(found, problem, browser)
        }
    }

    /// Nothing is begun with this: an attempt that was interrupted may be made anew.
    private func again(_ state: Capability, _ browser: String) async throws -> Page {
        let interrupted = try await pool.run { [store] connection in
            try store.takeInterrupted(state, on: &connection)
        }
        guard let interrupted else { return try await guessed(browser) }
        return try await fail(interrupted, .interrupted, browser)
    }

    private func guessed(_ browser: String) async throws -> Page {
        let isWithin = try await pool.run { [limits] connection in
            try RateLimiter.count(RateLimiter.key(guessesOf: browser, limits), on: &connection)
        }
        logger.info("a login that nobody waits for", metadata: ["address": "\(browser)"])
        return isWithin ? .linkNotValid : .tooMany
    }

    private func exchange(
        _ fields: FormFields, _ found: SessionStore.Found
    ) async throws -> (TokenCheck.Accepted, ProviderTokens) {
        let organisation = found.organisation
        do {
            let metadata = try await providers.metadata(of: organisation.issuer, at: organisation.discoveryURL)
            let code: String
            let answer = LoginRule.answer(fields, issuer: organisation.issuer, namesIssuer: metadata.namesIssuer)
            switch answer {
            case .code(let given): code = given
            case .problem(let problem): throw problem
            }
            let tokens = try await provider.exchange(
                code, verifier: found.verifier, redirect: redirect, as: organisation.client, at: metadata)
            return (try await check.accept(tokens, for: found, metadata), tokens)
        } catch let failure as ProviderFailure {
            throw LoginRule.problem(failure)
        }
    }

    // MARK: Asking whether the device is theirs

    private func needsConfirmation(_ found: SessionStore.Found, _ browser: String) -> Bool {
        switch limits.confirm {
        case .never: false
        case .always: true
        case .different: browser != found.deviceAddress
        }
    }

    /// Somebody may have been sent a login address by whoever holds the session: what waits is named before it gets in.
    private func ask(
        _ state: Capability, _ found: SessionStore.Found, _ tokens: ProviderTokens, _ accepted: TokenCheck.Accepted
    ) async throws -> Page {
        let confirm = Capability()
        try await pool.runPatiently(limits.patienceMax) { [store] connection in
            _ = try connection.run(try store.keep(tokens, for: state, confirm: confirm))
        }
        return .confirm(
            confirm, email: found.email.description, device: found.deviceName, address: found.deviceAddress)
    }

    /// The person has answered.
    func confirm(_ fields: FormFields, from browser: String) async throws -> Page {
        guard let confirm = fields["confirm"].flatMap({ Capability($0) }) else { return try await guessed(browser) }
        let kept = try await pool.run { [store] in try store.takeConfirmed(confirm, on: &$0) }
        guard let (found, tokens) = kept else { return try await guessed(browser) }
        do {
            guard fields["decision"] == "yes" else { throw LoginProblem.notConfirmed }
            let organisation = found.organisation
            let metadata: ProviderMetadata
            do {
                metadata = try await providers.metadata(of: organisation.issuer, at: organisation.discoveryURL)
            } catch {
                throw LoginRule.problem(error)
            }
            return try await complete(found, try await check.accept(tokens, for: found, metadata), tokens, browser)
        } catch let problem as LoginProblem {
            return try await fail(found, problem, browser)
        }
    }

    // MARK: Ends

    private func complete(
        _ found: SessionStore.Found, _ accepted: TokenCheck.Accepted, _ tokens: ProviderTokens,
        _ browser: String
    ) async throws -> Page {
        let device = tokens.refreshToken.map {
            SessionStore.NewDevice(refreshToken: $0, credential: DeviceCredential(by: SecretIssuer(store.secrets)))
        }
        let event = DeviceEvent.token(
            access: accepted.token, expires: accepted.expires, credential: device?.credential.text)
        let isThere: Bool
        do {
            isThere = try await pool.runPatiently(limits.patienceMax) { [store, events] connection in
                // An address of this environment, whichever way it was found: whoever proves it may join.
                let person = try PersonBinding.person(
                    accepted.identity, email: found.email.description, mayJoin: true, from: browser,
                    on: &connection)
                try LoginName.take(accepted.identity, of: person, on: &connection)
                return try store.complete(
                    found, person: person, token: EventStore.New(session: found.session, event: event),
                    identity: accepted.identity, device: device, from: browser, events: events, on: &connection)
            }
        } catch is BindingRefusal {
            throw LoginProblem.boundElsewhere
        }
        guard isThere else { return .linkNotValid }
        logger.info("logged in", metadata: ["environment": "\(found.organisation.environment)"])
        return .done
    }

    /// Tells the device and the person what went wrong, with the address of another attempt where one may help.
    private func fail(
        _ found: SessionStore.Found, _ problem: LoginProblem, _ browser: String
    ) async throws -> Page {
        var reason = problem.code
        if case .tokenRefused(let text) = problem { reason += ": \(text)" }
        if case .providerError(let text) = problem { reason += ": \(text)" }
        if case .emailUnverified(let text) = problem { reason += ": \(text)" }
        logger.info(
            "login failed", metadata: ["environment": "\(found.organisation.environment)", "reason": "\(reason)"])
        var retry: (attempt: LoginAttempt, url: String)?
        if problem.mayRetry,
            let metadata = try? await providers.metadata(
                of: found.organisation.issuer, at: found.organisation.discoveryURL)
        {
            let attempt = LoginAttempt()
            retry = (attempt, attempt.url(found.organisation, metadata, email: found.email, redirect: redirect))
        }
        let url = try await pool.runPatiently(limits.patienceMax) { [store, events, retry] connection in
            var url: String?
            if let retry, try connection.run(try store.add(retry.attempt, to: found.session)).affectedCount == 1 {
                url = retry.url
            }
            let event = DeviceEvent.error(problem, retryURL: url)
            let record = found.record(
                .loginFailed, actor: found.email.description, browser: browser, problem: problem)
            try connection.run(
                [SessionStore.end(found), AuditRecord.insert([record], in: found.organisation.environment)]
                    + events.append([EventStore.New(session: found.session, event: event)]))
            return url
        }
        return .problem(problem, retryURL: url)
    }
}
