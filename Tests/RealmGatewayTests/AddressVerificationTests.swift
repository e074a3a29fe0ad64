import Foundation
import HTTPClient
import Model
import Postgres
import Tenants
import TestSupport
import Testing

@testable import Identity
@testable import RealmGateway

/// Verification of the e-mail address in a token: the rules, and their use by the device API.
@Suite(.ownThreads) struct AddressVerificationTests {
    private static let tenant = "6d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"
    private static let entra = "https://login.microsoftonline.com/\(tenant)/v2.0"
    private static let now: Int64 = 1_800_000_000

    /// Returns the e-mail address of a token with these additional members.
    private static func email(
        _ members: String, _ addressVerification: AddressVerification, issuer: String = entra,
        domains: Set<String> = ["example.com", "example.org"]
    ) throws -> String? {
        let json =
            #"{"iss":"\#(issuer)","sub":"42","aud":"fieldpost","exp":\#(now),"nonce":"n"\#(members)}"#
        let claims = try JSONDecoder().decode(TokenClaims.self, from: Data(json.utf8))
        let environment = EnvironmentIdentity(
            environment: 1, issuer: issuer, audience: "fieldpost", jwksURL: "http://idp/jwks",
            addressVerification: addressVerification,
            domains: domains)
        return try claims.identity(in: environment, now: now, clockSkewMax: 60).email
    }

    static let claims: [(AddressVerification, String, UnverifiedAddressReason?)] = [
        (.emailVerified, "", .claimMissing(.emailVerified)),
        (.emailVerified, #","email_verified":null"#, .claimMissing(.emailVerified)),
        (.emailVerified, #","email_verified":false"#, .claimFalse(.emailVerified)),
        (.emailVerified, #","email_verified":"false""#, .claimFalse(.emailVerified)),
        (.emailVerified, #","email_verified":true"#, nil), (.emailVerified, #","email_verified":"true""#, nil),
        // One claim does not replace the other.
        (.emailVerified, #","xms_edov":true"#, .claimMissing(.emailVerified)),
        (.domainVerified, #","email_verified":true"#, .claimMissing(.domainVerified)),
        (.domainVerified, "", .claimMissing(.domainVerified)),
        (.domainVerified, #","xms_edov":false"#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":0"#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":2"#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":"0""#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":"yes""#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":null"#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":[true]"#, .claimFalse(.domainVerified)),
        (.domainVerified, #","xms_edov":true"#, nil), (.domainVerified, #","xms_edov":1"#, nil),
        (.domainVerified, #","xms_edov":"1""#, nil), (.domainVerified, #","xms_edov":"true""#, nil),
    ]

    @Test(arguments: 0..<claims.count) func addressNeedsItsVerificationClaim(index: Int) throws {
        let (addressVerification, members, objection) = Self.claims[index]
        let all = #","email":"Ana@example.com""# + members
        if let objection {
            #expect(throws: TokenError.emailUnverified(objection)) { try Self.email(all, addressVerification) }
        } else {
            #expect(try Self.email(all, addressVerification) == "ana@example.com")
        }
    }

    /// Tokens of a tenant's own accounts and of others, with the reason for a rejection.
    static let ofTenant: [(String, UnverifiedAddressReason?)] = [
        (#","preferred_username":"Ana@example.com""#, nil),
        (#","preferred_username":"x","email":"ana@example.com","tid":"\#(tenant)""#, nil),
        (#","email":"ana@example.com","tid":"\#(tenant.uppercased())","acct":0"#, nil),
        (#","email":"ana@example.com","idp":"\#(entra)""#, nil),
        (#","email":"ana@example.com","idp":"https://sts.windows.net/\#(tenant)/""#, nil),
        // Another tenant, personal accounts, and malformed values.
        (#","email":"ana@example.com","tid":"7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60""#, .tenantForeign),
        (#","preferred_username":"ana@example.com","tid":"9188040d-6c67-4c5b-b112-36a304b66dad""#, .tenantForeign),
        (#","email":"ana@example.com","tid":"""#, .tenantForeign),
        (#","email":"ana@example.com","tid":null"#, .tenantForeign),
        (#","email":"ana@example.com","tid":["\#(tenant)"]"#, .tenantForeign),
        // Guests: another organisation's administrators set their address.
        (#","email":"ana@example.com","idp":"live.com""#, .guest),
        (#","email":"ana@example.com","idp":"https://sts.windows.net/7d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60/""#, .guest),
        (#","email":"ana@example.com","idp":7"#, .guest), (#","email":"ana@example.com","acct":1"#, .guest),
        (#","email":"ana@example.com","acct":"x""#, .guest),
        // Other domains, and lookalikes. The address is `email` if present.
        (#","email":"ana@evil.example""#, .domainForeign),
        (#","email":"ana@evil.example","email_verified":true,"xms_edov":true"#, .domainForeign),
        (#","email":"ana@evil.example","preferred_username":"ana@example.com""#, .domainForeign),
        (#","email":"ana@example.com.evil.example""#, .domainForeign),
        (#","email":"ana@sub.example.com""#, .domainForeign), (#","email":"ana@xexample.com""#, .domainForeign),
        (#","email":"ana@example.com@evil.example""#, .domainForeign),
        (#","email":"ana@ex\u0430mple.com""#, .domainForeign), (#","email":"ana@example.com\u200b""#, .domainForeign),
        (#","email":"\"ana@example.com\"@evil.example""#, .domainForeign), (#","email":"""#, .domainForeign),
        (#","preferred_username":"ana_evil.example#EXT#@example.onmicrosoft.com""#, .domainForeign),
        (#","preferred_username":"+45 12345678""#, .domainForeign),
    ]

    @Test(arguments: 0..<ofTenant.count) func tenantVerifiesOnlyItsOwnAccounts(index: Int) throws {
        let (members, objection) = Self.ofTenant[index]
        if let objection {
            #expect(throws: TokenError.emailUnverified(objection)) { try Self.email(members, .issuer) }
        } else {
            #expect(try Self.email(members, .issuer) == "ana@example.com")
        }
    }

    @Test func tokenWithoutAddressIsRejected() throws {
        #expect(throws: TokenError.emailMissing) { _ = try Self.email("", .issuer) }
        #expect(throws: TokenError.emailMissing) { _ = try Self.email("", .domainVerified) }
        // The login name counts as an address only if the issuer verifies addresses.
        let name = #","preferred_username":"ana@example.com","email_verified":true,"xms_edov":true"#
        #expect(throws: TokenError.emailMissing) { _ = try Self.email(name, .emailVerified) }
        #expect(throws: TokenError.emailMissing) { _ = try Self.email(name, .domainVerified) }
        #expect(throws: TokenError.emailUnverified(.domainForeign)) { _ = try Self.email(name, .issuer, domains: []) }
    }

    /// An issuer that several tenants share verifies no address, even if it is configured.
    @Test(arguments: [
        "https://login.microsoftonline.com/common/v2.0", "https://login.microsoftonline.com/organizations/v2.0",
        "https://login.microsoftonline.com/consumers/v2.0",
        "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
        "https://login.microsoftonline.com/9188040D-6C67-4C5B-B112-36A304B66DAD/v2.0",
        "https://login.microsoftonline.com/{tenantid}/v2.0", "https://login.microsoftonline.com/\(tenant)",
        "https://login.microsoftonline.com/\(tenant)/v2.0/", "https://login.microsoftonline.com/x/\(tenant)/v2.0",
        "https://login.microsoftonline.com/\(tenant)/v2.0?x", "http://login.microsoftonline.com/\(tenant)/v2.0",
        "https://login.microsoftonline.com.evil.example/\(tenant)/v2.0",
        "https://x@login.microsoftonline.com/\(tenant)/v2.0", "https://login.microsoftonline.com:8443/\(tenant)/v2.0",
        "https://\(tenant).ciamlogin.com/\(tenant)/v2.0", "https://idp.example/\(tenant)/v2.0", "https://idp.example",
    ]) func sharedIssuerVerifiesNoAddress(issuer: String) throws {
        #expect(EntraTenant(issuer: issuer) == nil)
        #expect(throws: TokenError.emailUnverified(.issuerShared)) {
            try Self.email(#","email":"ana@example.com""#, .issuer, issuer: issuer)
        }
    }

    @Test(arguments: ["login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn"])
    func tenantIsReadFromItsIssuer(host: String) {
        #expect(EntraTenant(issuer: "https://\(host)/\(Self.tenant.uppercased())/v2.0")?.id == Self.tenant)
    }

    /// The device API applies the environment's setting, and its changes also to cached callers.
    @Test func deviceAPIAppliesTheVerificationRule() async throws {
        try await withGateway { fixture in
            func status(
                tenant: String = Self.tenant, _ name: String? = nil, _ email: String? = nil
            ) async throws -> Int {
                let token = try await fixture.keys.clientToken(nil, subject: "42", email: email) { claims in
                    (claims.iss, claims.nonce, claims.tid) = (Self.entra, "n", tenant)
                    claims.preferred_username = name
                    claims.email_verified = nil
                }
                return try await fixture.client.send(
                    Request(fixture.url("/v1/realms"), headers: [("Authorization", "Bearer \(token)")])
                ).status
            }
            func set(_ addressVerification: String) throws {
                try fixture.withDatabase { connection in
                    _ = try connection.run(
                        "UPDATE access.provider SET issuer = \(Self.entra), address_vouched_by = \(addressVerification)"
                    )
                }
            }
            try set("issuer")
            try await eventually("the tenant's accounts are accepted") { try await status("ana@example.com") == 200 }
            #expect(try await status("bo@example.com", "ana@example.com") == 200)
            #expect(try await status("ana@evil.example") == 401)
            #expect(try await status("ana@example.com", "ana@evil.example") == 401)
            #expect(try await status() == 401)
            #expect(try await status(tenant: "9188040d-6c67-4c5b-b112-36a304b66dad", "ana@example.com") == 401)
            // A token that was accepted before is verified again.
            for addressVerification in ["email_verified", "xms_edov"] {
                try set(addressVerification)
                try await eventually("\(addressVerification) is required") {
                    try await status("ana@example.com") == 401
                }
                #expect(try await status(nil, "ana@example.com") == 401)
            }
        }
    }
}
