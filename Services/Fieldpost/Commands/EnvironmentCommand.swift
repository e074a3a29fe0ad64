import ArgumentParser
import FoundationEssentials
import Model
import Postgres

/// `fieldpost environment`: the tenants of the installation.
struct EnvironmentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "environment", abstract: "The tenants: their people, identity provider and back end.",
        subcommands: [Add.self, List.self, Invite.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add an environment, or bring what is stored of it up to date.",
            discussion: """
                FILE of --people is a JSON array: [{"email": "ana@example.com", "reference": {…}}]. The reference is how
                the back end calls the person; for SAP: personWorkAgreementExternalId, companyCode, businessPartnerUuid.
                People who are not in the file stay as they are.
                """)
        @Argument(help: "Small letters, digits and hyphens.") var name: String
        @Option(name: .customLong("domain"), help: "An e-mail domain of its people; may be repeated.")
        var domains: [String]
        @Option(help: "The identity provider, as its tokens name it.") var issuer: String
        @Option(help: "The audience that tokens for Fieldpost name.") var audience: String
        @Option(help: "Where the identity provider's keys are.") var jwksUrl: String
        @Option(help: "The kind of back end: sap.") var backend: String
        @Option(help: "The back end's base URL.") var backendUrl: String
        @Option(help: "Fieldpost's user at the back end.") var backendUser: String
        @Option(help: "The environment variable in which the services find that user's password.")
        var backendPasswordVariable: String
        @Option(help: ArgumentHelp("The people, as a JSON file.", valueName: "file")) var people: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            let isName = { (byte: UInt8) in (97...122).contains(byte) || (48...57).contains(byte) }
            guard let first = name.utf8.first, isName(first), name.utf8.count <= 63,
                name.utf8.allSatisfy({ isName($0) || $0 == UInt8(ascii: "-") })
            else { throw ValidationError("the name must be small letters, digits and hyphens, at most 63") }
            guard !domains.isEmpty else { throw ValidationError("--domain is missing") }
            guard backend == "sap" else { throw ValidationError("--backend \(backend): there is only sap") }
            for (option, url) in [("--jwks-url", jwksUrl), ("--backend-url", backendUrl)] {
                guard url.hasPrefix("http://") || url.hasPrefix("https://"), URL(string: url)?.host != nil else {
                    throw ValidationError("\(option) \(url) is not an http or https URL")
                }
            }
            guard !backendPasswordVariable.isEmpty, !backendPasswordVariable.hasPrefix("FIELDPOST_") else {
                throw ValidationError(
                    "--backend-password-variable must not begin with FIELDPOST_: those are the services' settings")
            }
        }

        func run() throws {
            let domains = domains.map { $0.lowercased() }
            let people = try people.map { try Person.read($0, domains: domains) } ?? []
            var connection = try database.connect()
            try connection.run(
                EnvironmentStore.add(
                    name, provider: .init(domains: domains, issuer: issuer, audience: audience, jwksURL: jwksUrl),
                    backend: .init(
                        kind: backend, url: backendUrl, userName: backendUser, passwordVariable: backendPasswordVariable
                    ),
                    people: people))
            try showEnvironments(try EnvironmentStore.list(on: &connection).filter { $0.name == name }, output)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the environments.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            try showEnvironments(try EnvironmentStore.list(on: &connection), output)
        }
    }

    /// A person of `--people`'s file.
    struct Person: Decodable {
        let email: String
        let reference: [String: String]

        static func read(_ path: String, domains: [String]) throws -> [Person] {
            guard let data = try? Data(contentsOf: URL(filePath: path)) else {
                throw CommandFailure("cannot read \(path)")
            }
            guard let people = try? JSONDecoder().decode([Person].self, from: data) else {
                throw CommandFailure(#"\#(path) is not a JSON array of {"email": text, "reference": {name: text}}"#)
            }
            var emails: Set<String> = []
            for person in people {
                let email = person.email.lowercased()
                guard (try? RealmPath.user(email)) != nil, let at = email.lastIndex(of: "@"), at > email.startIndex
                else { throw CommandFailure("\(path): '\(person.email)' is not an e-mail address") }
                guard domains.contains(String(email[email.index(after: at)...])) else {
                    throw CommandFailure("\(path): \(person.email) is of none of the domains")
                }
                guard emails.insert(email).inserted else {
                    throw CommandFailure("\(path): \(person.email) is there twice")
                }
            }
            return people
        }
    }
}

private func showEnvironments(_ rows: [EnvironmentStore.Row], _ output: OutputOptions) throws {
    var table = Table(
        [
            ("ID", .right), ("NAME", .left), ("DOMAINS", .left), ("PEOPLE", .right), ("INVITED", .right),
            ("READY", .right), ("POSITION", .right), ("PUBLISHED", .right), ("BACK END", .left),
        ], empty: "there is no environment; add one with: fieldpost environment add")
    for row in rows {
        table.add([
            String(row.id), row.name, row.domains.joined(separator: ", "), String(row.people), String(row.invited),
            String(row.ready), String(row.position), String(row.published),
            row.backend.map { "\($0) \(row.backendURL ?? "")" } ?? "-",
        ])
    }
    try output.show(rows, table)
}
