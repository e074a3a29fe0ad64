import ServiceSettings
import Testing

@testable import LagMonitor

/// A console that would let in somebody else does not start.
@Suite struct ConsoleSettingsTests {
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

    @Test func aProviderSpeaksTLS() {
        #expect(problem([:]) == nil)
        #expect(problem(["ISSUER": "http://127.0.0.1:9000"]) == nil)
        for issuer in ["http://login.example.com", "login.example.com", "ftp://login.example.com"] {
            let said = problem(["ISSUER": issuer])
            #expect(said?.contains("_CONSOLE_ISSUER must be an https address") == true, "\(issuer): \(said ?? "")")
        }
    }

    @Test func administratorsHaveAddressesThatNobodyElseHas() {
        for text in ["rené@example.com", "ana", "ana@localhost"] {
            let said = problem(["ADMINISTRATORS": text])
            #expect(said?.contains("neither an address nor claim=value") == true, "\(text): \(said ?? "")")
        }
    }

    @Test func domainsAreDomains() {
        #expect(problem(["ISSUER": Self.tenant, "DOMAINS": "example.com,xn--exmple-cua.com,a-b.example.co"]) == nil)
        for text in [
            "Example.com", "example", "@example.com", "example.com.", "*.example.com", "exämple.com", "a b.com",
        ] {
            let said = problem(["ISSUER": Self.tenant, "DOMAINS": text])
            #expect(said?.contains("_DOMAINS: '\(text)' is no domain; it must be") == true, "\(said ?? "")")
        }
    }

    /// Whoever has a tenant of their own could name any address.
    @Test func aProviderOfManyTenantsIsRefused() {
        for name in ["common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad", "example.com"] {
            for domains in ["", "example.com"] {
                let said = problem(["ISSUER": "https://login.microsoftonline.com/\(name)/v2.0", "DOMAINS": domains])
                #expect(said?.contains("is shared by many tenants") == true, "\(name): \(said ?? "")")
            }
        }
        #expect(problem(["DOMAINS": "example.com"])?.contains("is for a tenant of Microsoft Entra ID") == true)
    }
}
