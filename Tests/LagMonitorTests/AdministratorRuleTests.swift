import Model
import Testing

@testable import LagMonitor

@Suite struct AdministratorRuleTests {
    private static let ana = AdministratorRule.entry("ana@example.com")

    @Test func entriesAreAddressesOrClaims() {
        #expect(AdministratorRule.entry("Ana@Example.com") == EmailAddress("ana@example.com").map { .address($0) })
        #expect(AdministratorRule.entry("groups=a=b") == .claim(name: "groups", value: "a=b"))
        for text in ["", "ana", "@example.com", "ana@", "a@b@c", "groups=", "=x"] {
            #expect(AdministratorRule.entry(text) == nil, "\(text)")
        }
        // Letters that another address's could be taken for are in no address.
        for text in ["rené@example.com", "rene\u{301}@example.com", "ana@exämple.com", "a\u{200B}na@example.com"] {
            #expect(AdministratorRule.entry(text) == nil, "\(text)")
        }
    }

    @Test func whoIsNamedOrHasTheClaimIsOne() throws {
        let entries = [try #require(Self.ana), .claim(name: "groups", value: "ops")]
        func isOne(_ email: String, _ groups: [String] = []) -> Bool {
            AdministratorRule.isAdministrator(
                email: email, claims: { $0 == "groups" ? groups : ["ops"] }, among: entries)
        }
        #expect(isOne("ana@example.com") && isOne("ANA@example.com") && isOne("bo@example.com", ["x", "ops"]))
        #expect(!isOne("bo@example.com") && !isOne("bo@example.com", ["OPS", "ops2"]) && !isOne("ana@example.com.eu"))
        #expect(!AdministratorRule.isAdministrator(email: "ana@example.com", claims: { _ in [] }, among: []))
    }

    /// Texts that Swift takes for equal are of different bytes.
    @Test func lookAlikesAreNotEqual() throws {
        let composed = AdministratorRule.Entry.claim(name: "groups", value: "\u{E9}quipe")
        let decomposed = "e\u{301}quipe"
        #expect(decomposed == "\u{E9}quipe")
        func isOne(_ email: String, _ group: String) -> Bool {
            AdministratorRule.isAdministrator(email: email, claims: { _ in [group] }, among: [composed])
        }
        #expect(isOne("bo@example.com", "\u{E9}quipe") && !isOne("bo@example.com", decomposed))
        let kelvin = "an\u{212A}@example.com"
        #expect(kelvin == "anK@example.com")
        let ank = try #require(AdministratorRule.entry("ank@example.com"))
        #expect(AdministratorRule.isAdministrator(email: "anK@example.com", claims: { _ in [] }, among: [ank]))
        #expect(!AdministratorRule.isAdministrator(email: kelvin, claims: { _ in [] }, among: [ank]))
    }
}
