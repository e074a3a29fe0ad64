import ArgumentParser
import Audit
import BackendConnections
import Backends
import Foundation
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost import`: what others have written down, brought into realms.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Bring files of other systems into realms.",
        subcommands: [Objects.self, LA311.self, Meetings.self, Tree.self])

    /// `fieldpost import tree`: reporting trees in the nested form.
    struct Tree: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write nested reporting trees, contexts and templates into a realm.",
            discussion: """
                FILE is JSON: a tree, an array of trees, or {"trees": […], "contexts": […], "templates": […]}.

                A tree: {"id": UUID, "referenceId": "12345", "name": "…", "title": "…", "hasDependencies": true,
                 "dependencies": [{"id": UUID}], "children": [ trees ]}
                A context: {"id": UUID, "name": "…", "required": true, "sections": [{"name": "All", "rootNode":
                 {"id": UUID}}, {"name": "Suggestions", "showCount": 5, "items": [{"id": UUID}]}], "preselected":
                 [{"id": UUID}], "visible": true, "readOnly": false}
                A template: {"id": UUID, "name": "…", "type": "…", "reportingContexts": [{"id": UUID}]}

                It is for environments that an integration looks after (--backend none).

                All is checked before anything is written. What is stored and not in the file stays, and what is so
                already is not written again.
                """)
        @Argument(help: "The file, of at most 64 MiB and 100000 nodes.") var file: String
        @Option(help: ArgumentHelp("/users/EMAIL or /catalogues/UUID.", valueName: "path")) var realm: String
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { _ = try path() }

        func run() throws {
            let path = try path()
            let tree = try TreeFile.read(file)
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            if try connection.run(BackendConfiguration.revision(in: environment)).count > 0 {
                throw CommandFailure(
                    "the environment has a back end of Fieldpost's, from which its choices come; declare further lists "
                        + "with: fieldpost environment templates")
            }
            var directory = RealmDirectory()
            guard let realm = try directory.id(of: path, in: environment, create: false, on: &connection) else {
                throw CommandFailure("there is no realm \(path)")
            }
            let catalogue = try catalogue(of: realm, at: path, in: environment, &directory, on: &connection)
            var work = TreeImport(tree, realm: realm, catalogue: catalogue, in: environment)
            let problems = try work.check(on: &connection)
            guard problems.isEmpty else { throw CommandFailure("\(file): \(problems.text)") }
            let counts = work.counts
            let audit = Administrator.commandLine.audit(
                .treeImported, path.description, in: environment,
                detail: [
                    "nodes": "\(counts.nodes)", "contexts": "\(counts.contexts)", "templates": "\(counts.templates)",
                ])
            try work.write(audit: audit, on: &connection, progress: Self.show)
            try show(counts, path)
        }

        /// As realms' paths are written: an address in small letters, a UUID as well.
        private func path() throws -> RealmPath {
            do throws(InvalidRealmPath) {
                var path = try RealmPath(validating: realm)
                if let email = path.email { path = try .user(email) }
                if let id = path.catalogueID { path = .catalogue(id) }
                switch path.realmClass {
                case .user, .catalogue: return path
                case .users, .common, .manager, .archive, .team, .share, .system: break
                }
            } catch {
                throw ValidationError("--realm: \(error)")
            }
            throw ValidationError("--realm \(realm): trees are in /users/EMAIL and /catalogues/UUID")
        }

        /// Where the nodes are that the person whose realm it is can choose.
        private func catalogue(
            of realm: Int32, at path: RealmPath, in environment: EnvironmentID, _ directory: inout RealmDirectory,
            on connection: inout Connection
        ) throws -> Int32? {
            guard path.realmClass == .user else { return nil }
            let rows = try connection.run(RealmObject.load(kinds: [.user], realm: realm, in: environment))
            for row in rows {
                guard let fields = try RealmObject(row)?.fields,
                    let id = try? JSONDecoder().decode(User.self, from: Data(fields.bytes)).catalogue
                else { continue }
                return try directory.id(of: .catalogue(id), in: environment, create: false, on: &connection)
            }
            return nil
        }

        /// A line that is written over, for who waits at a terminal.
        private static func show(_ done: Int, of total: Int) {
            guard total > TreeImport.batchCountMax, isatty(STDERR_FILENO) == 1 else { return }
            let line = done < total ? "\r\u{1B}[K\(done) of \(total) written" : "\r\u{1B}[K"
            FileHandle.standardError.write(Data(line.utf8))
        }

        private func show(_ counts: TreeImport.Counts, _ path: RealmPath) throws {
            if output.json { return try printJSON(Answer(realm: path.description, written: counts)) }
            let parts = [(counts.nodes, "node"), (counts.contexts, "context"), (counts.templates, "template")]
                .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
            let written = "\(counts.written) written" + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
            print("\(path): \(written), \(counts.unchanged) unchanged")
        }

        private struct Answer: Encodable {
            let realm: String
            let nodes, contexts, templates, unchanged: Int

            init(realm: String, written: TreeImport.Counts) {
                self.realm = realm
                (nodes, contexts, templates) = (written.nodes, written.contexts, written.templates)
                unchanged = written.unchanged
            }
        }
    }
}
