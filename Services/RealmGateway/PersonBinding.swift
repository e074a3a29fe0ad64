import Model
import Postgres
import Runtime

/// Binds an identity to its e-mail address at first login.
///
/// From then on the identity (issuer and subject) is the person, whatever its e-mail address becomes at the provider;
/// and nobody else gets in with that address.
enum PersonBinding {
    /// - Parameter mayJoin: Whether somebody who is not known yet may come in.
    /// - Throws: `Problem` 403.
    static func person(_ identity: Identity, mayJoin: Bool, on connection: inout Connection) throws -> Person {
        guard (try? RealmPath.user(identity.email)) != nil else { throw Problems.emailUnusable }
        if let person = try find(identity, on: &connection) { return person }
        var statements: [Statement] = []
        if mayJoin {
            statements.append(
                """
                INSERT INTO access.person (environment_id, email) VALUES (\(identity.environment), \(identity.email))
                ON CONFLICT (environment_id, email) DO NOTHING
                """)
        }
        statements.append(
            """
            UPDATE access.person SET issuer = \(identity.issuer), subject = \(identity.subject), bound_at = now()
            WHERE environment_id = \(identity.environment) AND email = \(identity.email) AND subject IS NULL
            """)
        try connection.run(statements)
        if let person = try find(identity, on: &connection) { return person }
        throw mayJoin ? Problems.boundElsewhere : try refusal(identity, on: &connection)
    }

    private static func find(_ identity: Identity, on connection: inout Connection) throws -> Person? {
        let rows = try connection.run(
            """
            SELECT id, email FROM access.person WHERE environment_id = \(identity.environment)
                AND issuer = \(identity.issuer) AND subject = \(identity.subject)
            """)
        guard rows.count == 1 else { return nil }
        guard let realm = try? RealmPath.user(try rows[0].value(1)) else { throw Problems.emailUnusable }
        return Person(
            environment: EnvironmentID(rawValue: identity.environment), id: try rows[0].value(0), realm: realm)
    }

    private static func refusal(_ identity: Identity, on connection: inout Connection) throws -> Problem {
        let rows = try connection.run(
            """
            SELECT FROM access.person WHERE environment_id = \(identity.environment) AND email = \(identity.email)
            """)
        return rows.count == 0 ? Problems.notAMember : Problems.boundElsewhere
    }
}
