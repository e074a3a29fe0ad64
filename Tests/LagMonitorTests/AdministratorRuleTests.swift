import Testing

@testable import LagMonitor

@Suite struct AdministratorRuleTests {
    @Test func entriesAreAddressesOrClaims() {
        #expect(AdministratorRule.entry("Ana@Example.com") == .address("ana@example.com"))
        #expect(AdministratorRule.entry("groups=a=b") == .claim(name: "groups", value: "a=b"))
        for text in ["", "ana", "@example.com", "ana@", "a@b@c", "groups=", "=x"] {
            #expect(AdministratorRule.entry(text) == nil, "\(text)")
        }
    }

    @Test func whoIsNamedOrHasTheClaimIsOne() {
        let entries: [AdministratorRule.Entry] = [.address("ana@example.com"), .claim(name: "groups", value: "ops")]
        func isOne(_ email: String, _ groups: [String] = []) -> Bool {
            AdministratorRule.isAdministrator(
                email: email, claims: { $0 == "groups" ? groups : ["ops"] }, among: entries)
        }
        #expect(isOne("ana@example.com") && isOne("ANA@example.com") && isOne("bo@example.com", ["x", "ops"]))
        #expect(!isOne("bo@example.com") && !isOne("bo@example.com", ["OPS", "ops2"]) && !isOne("ana@example.com.eu"))
        #expect(!AdministratorRule.isAdministrator(email: "ana@example.com", claims: { _ in [] }, among: []))
    }
}
