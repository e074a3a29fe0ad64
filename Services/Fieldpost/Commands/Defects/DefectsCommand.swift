import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import ServiceSettings
import Tenants

/// `fieldpost environment defects`: the defect tracker of an environment.
struct DefectsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "defects", abstract: "Manage the defect tracker of an environment: HCL Compass.",
        subcommands: [Add.self, Check.self, Logins.self, Remove.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add or update the defect tracker of an environment.",
            discussion: """
                Options that are not given keep their stored values. The account polls all people's defects, so it \
                must have access to all of them. Without one, or with --no-account, each person with a stored login of \
                their own is notified through it. The account's secret is not an argument: --password-from and \
                --token-from name an environment variable of this command, whose value is sealed with the first of \
                FIELDPOST_SECRET_KEYS.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(
            help: ArgumentHelp("Server without a path, such as https://compass.example.com:8190.", valueName: "url"))
        var server: String?
        @Option(help: "Schema repository.") var repository: String?
        @Option(help: ArgumentHelp("User database of the repository.", valueName: "name")) var userDatabase: String?
        @Option(help: "Record type of defects. (default: Defect)") var recordType: String?
        @Option(help: "Login name of the account.") var user: String?
        @Option(help: ArgumentHelp("Environment variable with the account's password.", valueName: "variable"))
        var passwordFrom: String?
        @Option(help: ArgumentHelp("Environment variable with a personal access token.", valueName: "variable"))
        var tokenFrom: String?
        @Flag(help: "Use people's own logins instead of an account.") var noAccount = false
        @Option(
            help: ArgumentHelp("Seconds between polls of the tracker, 5…86400. (default: 300)", valueName: "seconds"))
        var pollInterval: Int32?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let server,
                !OpenIDProvider.isUsable(server) || URL(string: server)?.path.drop(while: { $0 == "/" }) != ""
            {
                throw ValidationError(
                    "--server \(server) is not an https URL without a path (http is allowed for this machine only)")
            }
            for case (let option, let text?) in [
                ("--repository", repository), ("--user-database", userDatabase), ("--record-type", recordType),
                ("--user", user),
            ] where text.isEmpty {
                throw ValidationError("\(option) is empty")
            }
            guard [user ?? passwordFrom, tokenFrom, noAccount ? "" : nil].count(where: { $0 != nil }) < 2 else {
                throw ValidationError("give --user with --password-from, or --token-from, or --no-account")
            }
            try validateRange("--poll-interval", pollInterval, in: DefectTracker.pollSecondsRange, unit: "seconds")
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let id = try EnvironmentStore.find(name, on: &connection)
            let stored = try DefectTracker.load(id, on: &connection) ?? DefectTracker(environment: id)
            let tracker = try changed(stored)
            var statements = [
                tracker.save(),
                Administrator.commandLine.audit(.environmentChanged, name, in: id, detail: ["changed": "defects"]),
            ]
            let hasNewDatabase = !stored.serverURL.isEmpty && !tracker.isSameDatabase(as: stored)
            if hasNewDatabase { statements += try DefectsCommand.removingLogins(in: id, &connection) }
            try connection.run(statements)
            if hasNewDatabase { try DefectAccounts.recheckAll(in: id, on: &connection) }
            try DefectsCommand.show(tracker, output)
        }

        /// Returns the stored tracker with the given options applied.
        private func changed(_ stored: DefectTracker) throws -> DefectTracker {
            var tracker = stored
            if let server { tracker.serverURL = server.hasSuffix("/") ? String(server.dropLast()) : server }
            if let repository { tracker.repository = repository }
            if let userDatabase { tracker.database = userDatabase }
            if let recordType { tracker.recordType = recordType }
            if let pollInterval { tracker.pollSeconds = pollInterval }
            if noAccount { tracker.account = nil }
            if let tokenFrom { tracker.account = .token(sealed: try sealed(tokenFrom, for: tracker)) }
            if let user = user ?? tracker.account?.user, user != tracker.account?.user || passwordFrom != nil {
                guard let passwordFrom else { throw CommandFailure("--user \(user) needs --password-from") }
                tracker.account = .password(user: user, sealed: try sealed(passwordFrom, for: tracker))
            } else if passwordFrom != nil {
                throw CommandFailure("--password-from needs --user")
            }
            let missing = [
                ("--server", tracker.serverURL), ("--repository", tracker.repository),
                ("--user-database", tracker.database),
            ].filter(\.1.isEmpty).map(\.0)
            guard missing.isEmpty else { throw CommandFailure("missing: \(missing.joined(separator: ", "))") }
            return tracker
        }

        private func sealed(_ variable: String, for tracker: DefectTracker) throws -> Bytea {
            let secrets = try SecretOptions.box()
            guard secrets.canSeal else { throw CommandFailure("\(Setting.secretKeys.variable) is not set") }
            return Bytea(
                try secrets.seal(
                    try SecretOptions.value(of: variable), at: SecretContext.defectAccount(tracker.environment)))
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the defect tracker and the account's secret.",
            discussion: "People's notices and defects are kept; no new ones are polled.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            try EnvironmentFeature.remove("defects", from: name, database) { id, connection in
                guard try DefectTracker.load(id, on: &connection) != nil else { return nil }
                return [DefectTracker.remove(from: id)] + (try DefectsCommand.removingLogins(in: id, &connection))
            } afterwards: { id, connection in
                try DefectAccounts.recheckAll(in: id, on: &connection)
            }
        }
    }

    /// Statements that remove people's own logins, which were given for the former tracker only.
    private static func removingLogins(
        in environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [Statement] {
        try OwnDefectLogin.areKept(on: &connection) ? [OwnDefectLogin.removeAllLogins(in: environment)] : []
    }

    /// The stored tracker for output, without the secret.
    struct Row: Encodable {
        let server, repository, userDatabase, recordType, account: String
        let pollIntervalSeconds: Int32

        init(_ tracker: DefectTracker) {
            server = tracker.serverURL
            repository = tracker.repository
            userDatabase = tracker.database
            recordType = tracker.recordType
            account =
                switch tracker.account {
                case .password(let user, _): user
                case .token: "a personal access token"
                case nil: "people's own logins"
                }
            pollIntervalSeconds = tracker.pollSeconds
        }
    }

    static func show(_ tracker: DefectTracker, _ output: OutputOptions) throws {
        let row = Row(tracker)
        let table = Table(
            ["SERVER", "REPOSITORY", "DATABASE", "RECORDS", "ACCOUNT", .right("INTERVAL")], [row]
        ) { [$0.server, $0.repository, $0.userDatabase, $0.recordType, $0.account, "\($0.pollIntervalSeconds) s"] }
        try output.show([row], table)
    }

    /// `fieldpost environment defects logins`: maps people to logins of the tracker.
    struct Logins: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List or replace the mapping of people to tracker logins.",
            discussion: """
                FILE is a JSON object of login names by e-mail address: {"ana@example.com": "ana"}. It replaces the \
                stored mapping: people who are not in it get no more notices of defects. People are notified about \
                defects of their login, so logins are never guessed from addresses. Without an account, people's own \
                logins are used, and the mapping is not needed.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(help: ArgumentHelp("Replace the mapping by this file.", valueName: "file")) var file: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let email, login: String
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            if file != nil { try EnvironmentStore.lock(name, on: &connection) }
            let id = try EnvironmentStore.find(name, on: &connection)
            if let file {
                let logins = try Self.read(file)
                try connection.run(
                    DefectLogins.replace(logins, in: id) + [
                        Administrator.commandLine.audit(
                            .environmentChanged, name, in: id, detail: ["changed": "logins of defects"])
                    ])
            }
            let rows = try connection.run(DefectLogins.people(in: id)).decode(String.self, String.self).map {
                Row(email: $1, login: $0)
            }
            let table = Table(
                ["PERSON", "LOGIN"], rows,
                empty: "no logins; set them with: fieldpost environment defects logins \(name) --file FILE"
            ) { [$0.email, $0.login] }
            try output.show(rows, table)
        }

        /// Reads login names by e-mail address.
        private static func read(_ file: String) throws -> [String: String] {
            let data = try TextFile.read(file)
            let given: [String: String]
            do {
                try JSONCheck.checkKeys(ofFile: Array(data))
                given = try JSONDecoder().decode([String: String].self, from: data)
            } catch {
                throw CommandFailure("\(file) is not a JSON object of login names by e-mail address: \(error)")
            }
            var logins: [String: String] = [:]
            var people: [String: String] = [:]
            for (text, login) in given.sorted(by: { $0.key < $1.key }) {
                guard let email = EmailAddress(text)?.description else {
                    throw CommandFailure("\(file): '\(text)' is not an e-mail address")
                }
                guard !login.isEmpty, !login.contains(where: \.isWhitespace) else {
                    throw CommandFailure("\(file): '\(login)' of \(email) is not a login name")
                }
                if let other = people.updateValue(email, forKey: login) {
                    throw CommandFailure("\(file): '\(login)' belongs to both \(other) and \(email)")
                }
                guard logins.updateValue(login, forKey: email) == nil else {
                    throw CommandFailure("\(file): \(email) occurs twice")
                }
            }
            return logins
        }
    }
}

/// The status of people's own logins of a tracker (`DefectAccount`), reset when the logins become invalid.
enum DefectAccounts {
    /// Maximum number of realms that one statement reads.
    private static let pageCountMax: Int64 = 500
    /// Maximum number of optimistic-concurrency retries.
    private static let attemptsMax = 8

    /// Marks the accounts of all people as unchecked.
    static func recheckAll(in environment: EnvironmentID, on connection: inout Connection) throws {
        var last: Int32 = -1
        while true {
            let realms = try connection.run(
                """
                SELECT id FROM realm.realm WHERE environment_id = \(environment.rawValue) AND id > \(last)
                ORDER BY id LIMIT \(pageCountMax)
                """
            ).decode(Int32.self)
            guard let newest = realms.last else { return }
            last = newest
            try recheck(realms, in: environment, on: &connection)
        }
    }

    /// Marks the accounts of people with these addresses as unchecked.
    static func recheck(_ emails: [String], in environment: EnvironmentID, on connection: inout Connection) throws {
        var directory = RealmDirectory()
        let realms = try directory.ids(
            of: Set(emails.compactMap { try? RealmPath.user($0) }), in: environment, create: false, on: &connection)
        try recheck(Array(realms.values), in: environment, on: &connection)
    }

    /// Sets the status `unchecked`: `defect-submitter` receives the change, and checks the login.
    private static func recheck(
        _ realms: [Int32], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let unchecked = try CanonicalJSON(#"{"reason": null, "status": "unchecked"}"#)
        for _ in 0..<attemptsMax {
            let accounts = try RealmObject.byKey(
                connection.run(RealmObject.load(.defectAccount, realms: realms, in: environment))
            ).values
            var batch = WriteBatch(environment: environment)
            for (decision, account) in accounts.enumerated() {
                let status = try? account.decoded(as: DefectAccount.self, by: JSONDecoder())?.status
                if status != .unchecked { try batch.patch(account, unchecked, decision: decision) }
            }
            if try batch.commit(on: &connection).conflicts.isEmpty { return }
        }
        throw CommandFailure("conflict: people's logins changed \(attemptsMax) times meanwhile; run the command again")
    }
}
