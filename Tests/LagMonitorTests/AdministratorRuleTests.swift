import Model
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct AdministratorRuleTests {
    private static let ana = AdministratorRule.entry("ana@example.com")

    @Test func entriesAreAddressesOrClaims() {
        #expect(AdministratorRule.entry("Ana@Example.com") == EmailAddress("ana@example.com").map { .address($0) })
        #expect(AdministratorRule.entry("groups=a=b") == .claim(name: "groups", value: "a=b"))
        for text in ["", "ana", "@example.com", "ana@", "a@b@c", "groups=", "=x"] {
            #expect(AdministratorRule.entry(text) == nil, "\(text)")
        }
        // Letters that are confusable with an address's are rejected.
        for text in ["rené@example.com", "rene\u{301}@example.com", "ana@exämple.com", "a\u{200B}na@example.com"] {
            #expect(AdministratorRule.entry(text) == nil, "\(text)")
        }
    }

    @Test func listedAddressOrClaimGrantsAdministration() throws {
        let entries = [try #require(Self.ana), .claim(name: "groups", value: "ops")]
        func isAdministrator(_ email: String, _ groups: [String] = []) -> Bool {
            AdministratorRule.isAdministrator(
                email: email, claims: { $0 == "groups" ? groups : ["ops"] }, among: entries)
        }
        #expect(
            isAdministrator("ana@example.com") && isAdministrator("ANA@example.com")
                && isAdministrator("bo@example.com", ["x", "ops"]))
        #expect(
            !isAdministrator("bo@example.com") && !isAdministrator("bo@example.com", ["OPS", "ops2"])
                && !isAdministrator("ana@example.com.eu"))
        #expect(!AdministratorRule.isAdministrator(email: "ana@example.com", claims: { _ in [] }, among: []))
    }

    /// Texts that are canonically equivalent in Swift differ in their bytes.
    @Test func confusableAddressesAreNotEqual() throws {
        let composed = AdministratorRule.Entry.claim(name: "groups", value: "\u{E9}quipe")
        let decomposed = "e\u{301}quipe"
        #expect(decomposed == "\u{E9}quipe")
        func isAdministrator(_ email: String, _ group: String) -> Bool {
            AdministratorRule.isAdministrator(email: email, claims: { _ in [group] }, among: [composed])
        }
        #expect(isAdministrator("bo@example.com", "\u{E9}quipe") && !isAdministrator("bo@example.com", decomposed))
        let kelvin = "an\u{212A}@example.com"
        #expect(kelvin == "anK@example.com")
        let ank = try #require(AdministratorRule.entry("ank@example.com"))
        #expect(AdministratorRule.isAdministrator(email: "anK@example.com", claims: { _ in [] }, among: [ank]))
        #expect(!AdministratorRule.isAdministrator(email: kelvin, claims: { _ in [] }, among: [ank]))
    }
}
