import Crypto
import Environments
import Essentials
import FoundationEssentials
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
        var fields = FormFields()
        fields.add("response_type", "code")
        fields.add("client_id", organisation.client.id)
        fields.add("redirect_uri", redirect)
        fields.add("scope", organisation.scopes.joined(separator: " "))
        fields.add("state", state.text)
        fields.add("nonce", nonce.text)
        fields.add("code_challenge", Base64URL.text(Array(SHA256.hash(data: Array(verifier.text.utf8)))))
        fields.add("code_challenge_method", "S256")
        fields.add("login_hint", email.description)
        let endpoint = metadata.authorizationEndpoint
        return endpoint + (endpoint.contains("?") ? "&" : "?") + fields.encoded
    }
}
