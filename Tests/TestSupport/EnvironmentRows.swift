import FoundationEssentials
package import Model
package import Postgres

/// The rows of an environment, its logins and its back end for a test.
package struct EnvironmentRows {
    /// A login of the environment.
    package struct Provider {
        package var issuer: String
        package var audience: String
        package var jwksURL: String
        package var clientID: String?
        /// The sealed secret.
        package var clientSecret: Bytea?

        package init(
            issuer: String, audience: String = "a", jwksURL: String? = nil, clientID: String? = nil,
            clientSecret: Bytea? = nil
        ) {
            self.issuer = issuer
            self.audience = audience
            self.jwksURL = jwksURL ?? issuer + "/jwks"
            self.clientID = clientID
            self.clientSecret = clientSecret
        }
    }

    /// A back end; by default one that does not exist, with a password that does not exist.
    package struct Backend {
        package var kind: String
        package var url: String
        /// The sealed password; `nil` for one in a variable that is not set.
        package var password: Bytea?
        /// The kinds of entries that its people can register, as JSON.
        package var templates: String?

        package init(
            kind: String = "sap", url: String = "http://127.0.0.1:1", password: Bytea? = nil, templates: String? = nil
        ) {
            self.kind = kind
            self.url = url
            self.password = password
            self.templates = templates
        }
    }

    package var id: Int32?
    package var name: String
    package var provider: Provider?
    package var domains: [String]
    package var backend: Backend?
    /// The back end's ids of its people, by address.
    package var people: [String: [String: String]]

    /// - Parameter id: The environment's number; `nil`: PostgreSQL assigns it.
    package init(
        id: Int32? = nil, name: String = "acme", provider: Provider? = nil, domains: [String] = [],
        backend: Backend? = nil, people: [String: [String: String]] = [:]
    ) {
        self.id = id
        self.name = name
        self.provider = provider
        self.domains = domains
        self.backend = backend
        self.people = people
    }

    /// The statements that create the rows. An existing environment of this name gets missing rows and the back end.
    package func statements() throws -> [Statement] {
        var statements: [Statement] = [environment]
        if let provider {
            statements.append(
                """
                INSERT INTO access.provider (environment_id, issuer, audience, jwks_url, client_id, client_secret)
                SELECT id, \(provider.issuer), \(provider.audience), \(provider.jwksURL), \(provider.clientID),
                    \(provider.clientSecret)
                FROM realm.environment WHERE name = \(name)
                """)
        }
        statements.append(
            """
            INSERT INTO access.domain (domain, environment_id)
            SELECT d, id FROM realm.environment, unnest(\(domains)) AS u(d) WHERE name = \(name)
            """)
        if let backend { statements.append(connection(backend)) }
        let references = try people.values.map { JSONBytes(Array(try JSONEncoder().encode($0))) }
        statements.append(
            """
            INSERT INTO backend.person (environment_id, email, reference)
            SELECT id, p.email, p.reference
            FROM realm.environment, unnest(\(Array(people.keys)), \(references)) AS p(email, reference)
            WHERE name = \(name)
            """)
        return statements
    }

    private var environment: Statement {
        guard let id else {
            return "INSERT INTO realm.environment (name) VALUES (\(name)) ON CONFLICT (name) DO NOTHING"
        }
        return "INSERT INTO realm.environment (id, name) VALUES (\(id), \(name)) ON CONFLICT (name) DO NOTHING"
    }

    private func connection(_ backend: Backend) -> Statement {
        let variable = backend.password == nil ? "NO_SUCH_VARIABLE" : nil
        return """
            INSERT INTO backend.connection
                (environment_id, kind, url, user_name, password_variable, password, templates)
            SELECT id, \(backend.kind), \(backend.url), 'FIELDPOST', \(variable), \(backend.password),
                \(backend.templates)::jsonb
            FROM realm.environment WHERE name = \(name)
            ON CONFLICT (environment_id) DO UPDATE SET kind = excluded.kind, url = excluded.url,
                user_name = excluded.user_name, password_variable = excluded.password_variable,
                password = excluded.password, templates = excluded.templates
            """
    }

    /// Runs the statements.
    ///
    /// - Returns: The environment's number.
    @discardableResult
    package func insert(on connection: inout Connection) throws -> EnvironmentID {
        try connection.run(try statements())
        return try connection.run("SELECT id FROM realm.environment WHERE name = \(name)")[0]
            .decode(EnvironmentID.self)
    }
}
