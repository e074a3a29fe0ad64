import ArgumentParser
import Audit
import CommandLineSupport
import Essentials
import KeyedWorker
import KindSchema
import Model
import ObjectStore
import Tenants

extension SchemaCommand {
    struct Apply: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make a schema file the version that an environment uses.",
            discussion: """
                Lists the changes since the version in use. The file becomes the next version in one transaction, and \
                gateways use it at once. A breaking change is refused while there are objects of its kind. The audit \
                log records the version.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Argument(help: "The schema file.", completion: .file()) var file: String
        @Flag(help: "Only list the changes, and those that would be refused.") var dryRun = false
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            let value = try KindsFile.read(file).value
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let id = try EnvironmentStore.find(name, on: &connection)
            let application: KindApplication
            do {
                application = try KindApplication(value, to: id, on: &connection)
            } catch let error as JSONError {
                throw CommandFailure("\(file): as JSON, \(error)")
            }
            if application.isSame { return print("\(name) uses this file already") }
            let changes = KindChange.table(application.changes, empty: "no changes of values or permissions")
            print(changes.text, terminator: "")
            do {
                if dryRun { return try application.check(on: &connection) }
                let administrator = Administrator.commandLine
                let version = try application.commit(by: administrator.actor, on: &connection) { version in
                    [administrator.audit(.kindsApplied, name, in: id, detail: ["version": "\(version)"])]
                        + application.newTopics.map { Republish.request($0, in: id) }
                }
                print("\(name) uses version \(version)")
                if application.hasTopics { print("create its topics, if they are new: fieldpost topics apply") }
            } catch let refusals as KindApplication.Refusals {
                throw Self.failure(refusals, file)
            }
        }

        private static func failure(_ refusals: KindApplication.Refusals, _ file: String) -> CommandFailure {
            for refusal in refusals.list {
                let (change, count) = (refusal.change, refusal.objectCount)
                let objects = count == 1 ? "is 1 object of \(change.kind)" : "are \(count) objects of \(change.kind)"
                let subject = change.path.isEmpty ? change.kind : "\(change.kind) \(change.path)"
                printError(
                    "\(subject) \(change.text), but there \(objects); \(change.alternative ?? "keep it")\n")
            }
            return CommandFailure("\(file) was not applied: \(refusals.list.count) breaking changes")
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the schema file that an environment uses, or an earlier version.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(help: "The version. (default: the newest)") var version: Int32?
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect()
            let id = try EnvironmentStore.find(name, on: &connection)
            guard let stored = try KindVersion.load(version, in: id, on: &connection) else {
                throw CommandFailure(version.map { "\(name) has no version \($0)" } ?? "\(name) declares no kinds")
            }
            print(try KindsFile.yaml(try SchemaValue(Array(stored.content.utf8))), terminator: "")
        }
    }

    struct History: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the versions of an environment's schema file, the newest first.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let id = try EnvironmentStore.find(name, on: &connection)
            let rows = try KindVersion.all(in: id, on: &connection).map(Row.init)
            let table = Table(
                [.right("VERSION"), "APPLIED", "BY", .right("KINDS"), .right("BYTES")], rows,
                empty: "\(name) declares no kinds"
            ) { ["\($0.version)", $0.time, $0.actor, "\($0.kinds)", "\($0.bytes)"] }
            try output.show(rows, table)
        }

        /// A version as JSON.
        private struct Row: Encodable {
            let version: Int32
            let time, actor: String
            let kinds, bytes: Int

            init(_ stored: KindVersion) throws {
                (version, time, actor) = (stored.version, stored.appliedAt.description, stored.appliedBy)
                (kinds, bytes) = (try stored.kinds.kinds.count, stored.content.utf8.count)
            }
        }
    }
}

extension KindChange {
    /// Returns a table of changes.
    static func table(_ changes: [KindChange], empty: String) -> Table {
        Table(["EFFECT", "KIND", "FIELD", "CHANGE"], changes, empty: empty) { change in
            [
                change.effect.rawValue, change.kind, change.path.isEmpty ? "-" : change.path,
                change.alternative.map { "\(change.text); \($0)" } ?? change.text,
            ]
        }
    }
}
