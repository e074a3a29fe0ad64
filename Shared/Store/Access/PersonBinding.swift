import Audit
import FoundationEssentials
package import Model
import ObjectStore
package import Postgres
package import Tenants

/// The reason why an identity cannot be bound to a person.
package enum BindingRefusal: Error, Equatable {
    /// The address is bound to another account of the identity provider.
    case boundElsewhere
    /// The address does not belong to the organisation.
    case notAMember
    /// The address cannot name a realm.
    case emailUnusable
}

/// Binds an account of the identity provider to its e-mail address at the first login.
///
/// From then on, the account (issuer and subject) identifies the person, even if its e-mail address changes at the
/// provider, and no other account can log in with that address.
///
/// It also creates the person's `Person` object if there is none.
package enum PersonBinding {
    /// - Parameters:
    ///   - email: The identity's.
    ///   - mayJoin: Whether a person who was not invited may log in.
    ///   - address: The client's network address.
    /// - Throws: `BindingRefusal`.
    package static func person(
        _ identity: Identity, email: String, mayJoin: Bool, from address: String, on connection: inout Connection
    ) throws -> BoundPerson {
        let person =
            try find(identity, on: &connection)
            ?? bind(identity, email: email, mayJoin: mayJoin, from: address, on: &connection)
        try People.add([(person.object, LoginName.of(identity) ?? "")], in: person.environment, on: &connection)
        return person
    }

    private static func bind(
        _ identity: Identity, email: String, mayJoin: Bool, from address: String, on connection: inout Connection
    ) throws -> BoundPerson {
        guard EmailAddress(email) != nil else { throw BindingRefusal.emailUnusable }
        var statements: [Statement] = []
        if mayJoin {
            statements.append(
                """
                INSERT INTO access.person (environment_id, email) VALUES (\(identity.environment), \(email))
                ON CONFLICT (environment_id, email) DO NOTHING
                """)
        }
        let record = AuditRecord(
            actor: email, action: .bound, subject: "\(identity.issuer) \(identity.subject)", address: address)
        statements += [
            """
            UPDATE access.person SET issuer = \(identity.issuer), subject = \(identity.subject), bound_at = now()
            WHERE environment_id = \(identity.environment) AND email = \(email) AND subject IS NULL
            """,
            // now() is constant within a transaction: the comparison detects a binding by this statement.
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM access.person WHERE environment_id = \(identity.environment) AND email = \(email)
                    AND bound_at = now())
            """,
            AuditRecord.insert([(record, 0)], in: EnvironmentID(rawValue: identity.environment)),
        ]
        try connection.run(statements)
        if let person = try find(identity, on: &connection) { return person }
        throw mayJoin ? BindingRefusal.boundElsewhere : try refusal(identity, email, on: &connection)
    }

    private static func find(_ identity: Identity, on connection: inout Connection) throws -> BoundPerson? {
        let rows = try connection.run(
            """
            SELECT id, email, object_id FROM access.person WHERE environment_id = \(identity.environment)
                AND issuer = \(identity.issuer) AND subject = \(identity.subject)
            """)
        guard let (id, email, object) = try rows.first?.decode(Int32.self, String.self, UUID.self) else { return nil }
        guard let realm = try? RealmPath.user(email) else { throw BindingRefusal.emailUnusable }
        return BoundPerson(
            environment: EnvironmentID(rawValue: identity.environment), id: id, email: email, realm: realm,
            object: object)
    }

    private static func refusal(
        _ identity: Identity, _ email: String, on connection: inout Connection
    ) throws -> BindingRefusal {
        let rows = try connection.run(
            """
            SELECT FROM access.person WHERE environment_id = \(identity.environment) AND email = \(email)
            """)
        return rows.count == 0 ? BindingRefusal.notAMember : BindingRefusal.boundElsewhere
    }

    /// Returns the next people who are bound to an account of the identity provider, sorted by id.
    ///
    /// - Parameters:
    ///   - last: Returns only greater ids.
    ///   - people: Restricts the result to these ids; `nil`: no restriction.
    package static func bound(
        after last: Int32, of people: [Int32]?, countMax: Int64, in environment: EnvironmentID,
        on connection: inout Connection
    ) throws(PostgresError) -> [(id: Int32, email: String)] {
        try connection.run(
            """
            SELECT id, email FROM access.person
            WHERE environment_id = \(environment) AND id > \(last) AND subject IS NOT NULL
                AND (\(people == nil) OR id = ANY (\(people ?? [])))
            ORDER BY id LIMIT \(countMax)
            """
        ).decode(Int32.self, String.self).map { (id: $0, email: $1) }
    }

    /// Returns statements that unbind people's accounts: their next login binds one. Their devices can no longer renew
    /// tokens, even if the same account is bound again.
    package static func unbind(_ people: [Int32], in environment: EnvironmentID) -> [Statement] {
        [
            """
            UPDATE access.person SET issuer = NULL, subject = NULL, bound_at = NULL
            WHERE environment_id = \(environment) AND id = ANY (\(people))
            """,
            """
            UPDATE onboarding.refresh_token SET newest = NULL, former = NULL
            WHERE environment_id = \(environment) AND person_id = ANY (\(people)) AND newest IS NOT NULL
            """,
        ]
    }
}
