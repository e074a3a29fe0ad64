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

/// `fieldpost environment defects`: where an environment's defects are kept.
struct DefectsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "defects", abstract: "Where an environment's defects are kept: HCL Compass.",
        subcommands: [Add.self, Check.self, Logins.self, Remove.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Say where an environment's defects are, or bring what is stored of it up to date.",
            discussion: """
                What is not given stays as it is. The account asks for everybody's defects, so it must see all of them;
                without one, or with --no-account, each person is told of their defects by their own login, once they
                have stored one. The account's secret is never given as an argument: --password-from and --token-from
                name an environment variable of this command, whose value is stored sealed with the
                first of FIELDPOST_SECRET_KEYS.
                """)
        @Argument(help: "The environment.") var name: String
        @Option(help: ArgumentHelp("The server, without a path: https://compass.example.com:8190.", valueName: "url"))
        var server: String?
        @Option(help: "The schema repository.") var repository: String?
        @Option(help: ArgumentHelp("The user database in it.", valueName: "name")) var userDatabase: String?
        @Option(help: "The type of record that a defect is. (default: Defect)") var recordType: String?
        @Option(help: "The account's login name.") var user: String?
        @Option(help: ArgumentHelp("Variable of this command that holds its password.", valueName: "variable"))
        var passwordFrom: String?
        @Option(
            help: ArgumentHelp(
                "Variable of this command that holds a personal access token, instead of user and password.",
                valueName: "variable"))
        var tokenFrom: String?
        @Flag(help: "There is no account: people's own logins are used.") var noAccount = false
        @Option(
            help: ArgumentHelp("Seconds between looks into the tracker, 5…86400. (default: 300)", valueName: "seconds"))
        var pollInterval: Int32?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let server,
                !OpenIDProvider.isUsable(server) || URL(string: server)?.path.drop(while: { $0 == "/" }) != ""
            {
                throw ValidationError(
                    "--server \(server) is not an https URL without a path (http is for this machine only)")
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
                throw ValidationError("--poll-interval is 5…86400, not \(pollInterval)")
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
            let isAnother = !stored.serverURL.isEmpty && !tracker.isSameDatabase(as: stored)
            if isAnother { statements += try DefectsCommand.forgettingLogins(in: id, &connection) }
            try connection.run(statements)
            if isAnother { try DefectAccounts.recheckAll(in: id, on: &connection) }
            try DefectsCommand.show(tracker, output)
        }

        /// What is stored, with what was given over it.
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
            abstract: "Forget where an environment's defects are, and the account's secret.",
            discussion: "Notices and defects that people have stay; nobody asks for new ones.")
        @Argument(help: "The environment.") var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            try EnvironmentPart.remove("defects", from: name, database) { id, connection in
                guard try DefectTracker.load(id, on: &connection) != nil else { return nil }
                return [DefectTracker.remove(from: id)]
                    + (try DefectsCommand.forgettingLogins(in: id, &connection))
            } afterwards: { id, connection in
                try DefectAccounts.recheckAll(in: id, on: &connection)
            }
        }
    }

    /// People gave their own logins for this tracker, and for no other.
    private static func forgettingLogins(
        in environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [Statement] {
        try OwnDefectLogin.areKept(on: &connection) ? [OwnDefectLogin.forgetAll(in: environment)] : []
    }

    static func environment(_ name: String, on connection: inout Connection) throws -> EnvironmentID {
        guard let id = try EnvironmentStore.load(name, on: &connection)?.id else {
            throw CommandFailure("there is no environment \(name)")
        }
        return id
    }

    /// What is stored, for a person or a script, without the secret.
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
                ("EVERY", .right),
            ], empty: "")
        table.add([
            row.server, row.repository, row.userDatabase, row.recordType, row.account, "\(row.pollInterval) s",
        ])
        try output.show([row], table)
    }
}
