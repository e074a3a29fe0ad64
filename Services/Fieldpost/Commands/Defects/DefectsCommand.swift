import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
import Compass
import FoundationEssentials
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import ServiceRuntime
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
        @Argument(help: "The environment.") var name: String
        @Option(
            help: ArgumentHelp("Server without a path, such as https://compass.example.com:8190.", valueName: "url"))
        var server: String?
        @Option(help: "Schema repository.") var repository: String?
        @Option(help: ArgumentHelp("User database of the repository.", valueName: "name")) var userDatabase: String?
        @Option(help: "Record type of defects. (default: Defect)") var recordType: String?
        @Option(help: "Login name of the account.") var user: String?
        @Option(help: ArgumentHelp("Environment variable with the account's password.", valueName: "variable"))
        var passwordFrom: String?
        @Option(
            help: ArgumentHelp(
                "Environment variable with a personal access token.",
                valueName: "variable"))
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
            if let pollInterval, !DefectTracker.pollSecondsRange.contains(pollInterval) {
                throw ValidationError("--poll-interval must be from 5 to 86400 seconds, not \(pollInterval)")
            }
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let id = try DefectsCommand.environment(name, on: &connection)
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
        @Argument(help: "The environment.") var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            try EnvironmentFeature.remove("defects", from: name, database) { id, connection in
                guard try DefectTracker.load(id, on: &connection) != nil else { return nil }
                return [DefectTracker.remove(from: id)]
                    + (try DefectsCommand.removingLogins(in: id, &connection))
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

    static func environment(_ name: String, on connection: inout Connection) throws -> EnvironmentID {
        guard let id = try EnvironmentStore.load(name, on: &connection)?.id else {
            throw CommandFailure("environment \(name) does not exist")
        }
        return id
    }

    /// The stored tracker for output, without the secret.
    struct Row: Encodable {
        let server, repository, userDatabase, recordType, account: String
        let pollInterval: Int32

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
            pollInterval = tracker.pollSeconds
        }
    }

    static func show(_ tracker: DefectTracker, _ output: OutputOptions) throws {
        let row = Row(tracker)
        var table = Table(
            [
                ("SERVER", .left), ("REPOSITORY", .left), ("DATABASE", .left), ("RECORDS", .left), ("ACCOUNT", .left),
                ("INTERVAL", .right),
            ], empty: "")
        table.add([
            row.server, row.repository, row.userDatabase, row.recordType, row.account, "\(row.pollInterval) s",
        ])
        try output.show([row], table)
    }
}
