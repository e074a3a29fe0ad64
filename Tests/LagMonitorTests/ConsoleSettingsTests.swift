import ServiceSettings
import TestSupport
import Testing

@testable import LagMonitor

/// Insecure settings prevent the start.
@Suite(.ownThreads) struct ConsoleSettingsTests {
    private func problem(_ changes: [String: String]) -> String? {
        let usual = [
            "URL": "https://console.example.com", "ISSUER": "https://login.example.com", "CLIENT_ID": "console",
            "CLIENT_SECRET": "secret", "ADMINISTRATORS": "ana@example.com",
        ]
        let named = usual.merging(changes) { $1 }.map { ("FIELDPOST_CONSOLE_" + $0.key, $0.value) }
        do {
            let needed = [("FIELDPOST_DATABASE_URL", "x"), ("FIELDPOST_KAFKA_BROKERS", "x:1")]
            let configuration = try Configuration(
                Settings.all + Setting.runtime, environment: Dictionary(uniqueKeysWithValues: named + needed))
            return try ConsoleSettings(configuration) == nil ? "no console" : nil
        } catch {
            return "\(error)"
        }
    }

    private static let tenant = "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0"

    @Test func issuerRequiresTLS() {
        #expect(problem([:]) == nil)
        #expect(problem(["ISSUER": "http://127.0.0.1:9000"]) == nil)
        for issuer in ["http://login.example.com", "login.example.com", "ftp://login.example.com"] {
            let message = problem(["ISSUER": issuer])
            #expect(message?.contains("_CONSOLE_ISSUER must be an https URL") == true, "\(issuer): \(message ??  "")")
        }
    }

    @Test func ambiguousAdministratorAddressesAreRejected() {
        for text in ["rené@example.com", "ana", "ana@localhost"] {
            let message = problem(["ADMINISTRATORS": text])
            #expect(message?.contains("neither an address nor claim=value") == true, "\(text): \(message ??  "")")
        }
    }

    @Test func invalidDomainsAreRejected() {
        #expect(problem(["ISSUER": Self.tenant, "DOMAINS": "example.com,xn--exmple-cua.com,a-b.example.co"]) == nil)
        for text in [
            "Example.com", "example", "@example.com", "example.com.", "*.example.com", "exämple.com", "a b.com",
        ] {
            let message = problem(["ISSUER": Self.tenant, "DOMAINS": text])
            #expect(message?.contains("_DOMAINS: '\(text)' is not a domain; it must be") == true, "\(message ??  "")")
        }
    }

    /// The administrators of any tenant could assert any address.
    @Test func sharedIssuerIsRejected() {
        for name in ["common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad", "example.com"] {
            for domains in ["", "example.com"] {
                let message = problem(["ISSUER": "https://login.microsoftonline.com/\(name)/v2.0", "DOMAINS": domains])
                #expect(message?.contains("is shared by many tenants") == true, "\(name): \(message ??  "")")
            }
        }
        #expect(problem(["DOMAINS": "example.com"])?.contains("requires a tenant of Microsoft Entra ID") == true)
    }
}
