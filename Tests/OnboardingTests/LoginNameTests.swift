import Access
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// A person's name after their login.
@Suite(.ownThreads) struct LoginNameTests {
    /// The names of the person's two objects.
    private func names(_ fixture: OnboardingFixture) throws -> [String: String] {
        try fixture.withDatabase { connection in
            let rows = try connection.run(
                "SELECT kind, fields->>'name' FROM realm.object WHERE kind IN ('Person', 'User') AND NOT deleted")
            return Dictionary(
                uniqueKeysWithValues: try rows.map { (try $0.value(0), try $0.optional(1) ?? "") })
        }
    }

    /// Writes a name into one of the person's objects; `isEdit`: as an edit by the person.
    private func write(_ name: String, _ kind: Kind, isEdit: Bool, _ fixture: OnboardingFixture) throws {
        try fixture.withDatabase { connection in
            var directory = RealmDirectory()
            let path: RealmPath = kind == .user ? try .user("ana@example.com") : .common
            let number = try directory.id(of: path, in: fixture.environment, create: true, on: &connection)
            let realm = try #require(number)
            let ids = try connection.run("SELECT object_id FROM access.person WHERE email = 'ana@example.com'")
            let id: UUID = kind == .user ? UUID() : try ids[0].value(0)
            var batch = WriteBatch(environment: fixture.environment)
            let key = ObjectKey(realm: realm, kind: kind, id: id)
            let email = kind == .user ? #", "email": "ana@example.com""# : ""
            batch.put(key, try CanonicalJSON(#"{"name": "\#(name)"\#(email)}"#), decision: 0, isEdit: isEdit)
            _ = try batch.commit(on: &connection)
        }
    }

    private func logIn(as name: String?, _ fixture: OnboardingFixture) async throws {
        fixture.identity.add(IdentityPerson(email: "ana@example.com", name: name))
        let device = try await TestDevice(fixture)
        let page = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
        try #require(page.status == 200, "\(page.body)")
    }

    @Test func loginNameAppliesUntilEdited() async throws {
        try await withOnboarding { fixture in
            // The realm was initialised before.
            try write("ana", .user, isEdit: false, fixture)
            try await logIn(as: "  Ana \u{1b} Ørsted ", fixture)
            #expect(try names(fixture) == ["Person": "Ana Ørsted", "User": "Ana Ørsted"])
            let stored = try fixture.withDatabase { connection in
                try connection.run(People.loginName(of: "ana@example.com", in: fixture.environment))[0]
                    .value(0, as: String.self)
            }
            #expect(stored == "Ana Ørsted")

            // The provider has a new name.
            try await logIn(as: "Ana Holm", fixture)
            #expect(try names(fixture) == ["Person": "Ana Holm", "User": "Ana Holm"])

            // After an edit, the provider's name no longer applies.
            try write("Anna", .person, isEdit: true, fixture)
            try await logIn(as: "Ana H.", fixture)
            #expect(try names(fixture) == ["Person": "Anna", "User": "Ana H."])
            try await logIn(as: nil, fixture)
            #expect(try names(fixture) == ["Person": "Anna", "User": "Ana H."])
        }
    }

    /// A single character can have any number of scalars.
    @Test func longNameIsTruncatedByScalars() async throws {
        try await withOnboarding { fixture in
            try await logIn(as: "x" + String(repeating: "\u{301}", count: 1_000), fixture)
            #expect(try names(fixture)["Person"]?.unicodeScalars.count == 100)
        }
    }
}
