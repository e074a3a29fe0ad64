import ArgumentParser
import Audit
import BackendConnections
import Backends
import Foundation
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost import`: imports data of other systems into realms.
struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Import files of other systems into realms.",
        subcommands: [Objects.self, Tree.self])

    /// `fieldpost import tree`: imports nested reporting trees.
    struct Tree: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Import nested reporting trees, contexts and templates.",
            discussion: """
                FILE is JSON: a tree, an array of trees, or {"trees": […], "contexts": […], "templates": […]}.

                A tree: {"id": UUID, "referenceId": "12345", "name": "…", "title": "…", "hasDependencies": true,
                 "dependencies": [{"id": UUID}], "children": [ trees ]}
                A context: {"id": UUID, "name": "…", "required": true, "sections": [{"name": "All", "rootNode":
                 {"id": UUID}}, {"name": "Suggestions", "showCount": 5, "items": [{"id": UUID}]}], "preselected":
                 [{"id": UUID}], "visible": true, "readOnly": false}
                A template: {"id": UUID, "name": "…", "type": "…", "reportingContexts": [{"id": UUID}]}

                Only for environments that an integration manages (--backend none).

                The file is checked before anything is written. Stored objects that are not in the file are kept; \
                objects with the same fields are unchanged.
                """)
        @Argument(help: "File to import, up to 64 MiB and 100000 nodes.") var file: String
        @Option(help: ArgumentHelp("Realm: /users/EMAIL or /catalogues/UUID.", valueName: "path")) var realm: String
        @Option(help: "Environment; required if there are several.") var environment: String?
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
                    "the environment has a back end in Fieldpost, which provides its choices; declare other lists "
                        + "with: fieldpost environment templates")
            }
            var directory = RealmDirectory()
            guard let realm = try directory.id(of: path, in: environment, create: false, on: &connection) else {
                throw CommandFailure("realm \(path) does not exist")
            }
            let catalogue = try catalogue(of: realm, at: path, in: environment, &directory, on: &connection)
            var treeImport = TreeImport(tree, realm: realm, catalogue: catalogue, in: environment)
            let problems = try treeImport.check(on: &connection)
            guard problems.isEmpty else { throw CommandFailure("\(file): \(problems.text)") }
            let counts = treeImport.counts
            let audit = Administrator.commandLine.audit(
                .treeImported, path.description, in: environment,
                detail: [
                    "nodes": "\(counts.nodes)", "contexts": "\(counts.contexts)", "templates": "\(counts.templates)",
                ])
            try treeImport.write(audit: audit, on: &connection, progress: Self.show)
            try show(counts, path)
        }

        /// The normalised path: e-mail address and UUID in lower case.
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
            throw ValidationError("--realm must be /users/EMAIL or /catalogues/UUID, not \(realm)")
        }

        /// The realm with the nodes that the person can choose.
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

        /// Overwrites one line of progress, if standard error is a terminal.
        private static func show(_ done: Int, of total: Int) {
            guard total > TreeImport.batchCountMax else { return }
            Terminal.showProgress(done < total ? "\(done) of \(total) written" : "")
        }

        private func show(_ counts: TreeImport.Counts, _ path: RealmPath) throws {
            if output.json { return try printJSON(Report(realm: path.description, written: counts)) }
            let parts = [(counts.nodes, "node"), (counts.contexts, "context"), (counts.templates, "template")]
                .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
            let written = "\(counts.written) written" + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
            print("\(path): \(written), \(counts.unchanged) unchanged")
        }

        private struct Report: Encodable {
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
