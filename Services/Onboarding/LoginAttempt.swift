import Identity
import Model

/// What one attempt to log in is bound to, and the address that begins it.
struct LoginAttempt: Sendable {
    /// Binds the provider's answer to the session (RFC 6749 §10.12).
    let state = Capability()
    /// Binds the ID token to this attempt (OpenID Connect Core 1.0 §3.1.2.1).
    let nonce = Capability()
    /// Binds the code to whoever asked for it (PKCE, RFC 7636).
    let verifier = Capability()

    /// The address of the provider's login page for this attempt.
    func url(
        _ organisation: Organisation, _ metadata: ProviderMetadata, email: EmailAddress, redirect: String
    ) -> String {
        AuthorizationRequest(state: state.text, nonce: nonce.text, verifier: verifier.text).url(
            as: organisation.client.id, scopes: organisation.scopes, at: metadata, redirect: redirect,
            hint: email.description)
    }
}
