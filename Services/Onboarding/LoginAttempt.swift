import Identity
import Model

/// A login attempt: the values that bind the provider's response to it.
struct LoginAttempt: Sendable {
    /// Binds the provider's response to the session (RFC 6749 §10.12).
    let state = Capability()
    /// Binds the ID token to this attempt (OpenID Connect Core 1.0 §3.1.2.1).
    let nonce = Capability()
    /// Binds the code to the client that requested it (PKCE, RFC 7636).
    let verifier = Capability()

    /// Returns the URL of the provider's login page for this attempt.
    func url(
        _ organisation: Organisation, _ metadata: ProviderMetadata, email: EmailAddress, redirect: String
    ) -> String {
        AuthorizationRequest(state: state.text, nonce: nonce.text, verifier: verifier.text).url(
            as: organisation.client.id, scopes: organisation.scopes, at: metadata, redirect: redirect,
            hint: email.description)
    }
}
