import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
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
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
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
            if output.json {
                return try printJSON(
                    Report(
                        realm: path.description, nodes: counts.nodes, contexts: counts.contexts,
                        templates: counts.templates, unchanged: counts.unchanged))
            }
            let parts = [(counts.nodes, "node"), (counts.contexts, "context"), (counts.templates, "template")]
                .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
            let written = "\(counts.written) written" + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
            print("\(path): \(written), \(counts.unchanged) unchanged")
        }

        private struct Report: Encodable {
            let realm: String
            let nodes, contexts, templates, unchanged: Int
        }
    }

    /// `fieldpost import objects`: imports one object per line of JSON.
    struct Objects: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Import objects of any kind from lines of JSON.",
            discussion: """
                Each line of FILE is {"realm": PATH, "kind": KIND, "id": UUID, "fields": {…}}. The fields are checked \
                like a device's. An existing object with other fields is replaced, as by an integration; an object \
                with the same fields is unchanged. So an interrupted import can be repeated. Stored objects that are \
                not in the file are kept.

                A Person is added with {"realm": "/common", "kind": "Person", "id": UUID, "email": ADDRESS, "fields": \
                {…}}. Without "email", a person with the id must exist.

                Objects that services create are rejected: copies of tasks, positions and shared items, Share and \
                Realms objects, and, if Fieldpost has the environment's back end, objects that come from it.

                A file is read three times: for people and teams, for the other objects of /common, and for the rest, \
                so that objects are written before those that refer to them. Standard input is read once: sort its \
                lines in this order. Pipe a compressed file: zcat FILE | fieldpost import objects -

                Memberships, shared items and PersonLookup objects are checked like a device's: the people and teams \
                to which they refer must exist. Only an import may write to the realm of an address without a person, \
                or add a person outside the environment's domains; both cause a warning.

                Invalid lines are reported with number and reason, and the others are written; the exit status is 1 \
                then.
                """)

        @Argument(help: "File to import, or - for standard input.") var file: String
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
        @Option(help: ArgumentHelp("Maximum number of invalid lines to print.", valueName: "count"))
        var problems = 20
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try validateRange("--problems", problems, in: 0...10_000)
        }

        func run() async throws {
            let source = try ImportSource(file)
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let hasBackend = try connection.run(BackendConfiguration.revision(in: environment)).count > 0
            try connection.run(KindApplication.hold(environment))
            let catalogue = try KindCatalogue.load(environment, on: &connection)
            var objects = ObjectImport(
                source.name, in: environment, hasBackend: hasBackend, catalogue: catalogue, on: connection,
                problemCountMax: problems)
            var lineCount = 0
            // Objects are written before those that refer to them.
            for pass in source.bytesTotal == nil ? [nil] : ObjectLines.Pass.allCases.map(Optional.some) {
                lineCount = try await Self.read(source, pass, into: &objects)
            }
            try objects.end()
            try show(objects.counts, objects.problems, objects.warnings, lineCount: lineCount)
        }

        /// Prints the result.
        ///
        /// - Throws: `CommandFailure` if lines were rejected.
        private func show(
            _ counts: ObjectImport.Counts, _ problems: ImportProblems, _ warnings: ImportProblems, lineCount: Int
        ) throws {
            if output.json {
                try printJSON(
                    Summary(
                        lines: lineCount, created: counts.created, replaced: counts.replaced,
                        unchanged: counts.unchanged, refused: problems.count, warned: warnings.count,
                        problems: problems.retained, warnings: warnings.retained))
            } else {
                printError(problems.text() + warnings.text(as: "warning: "))
                let rows = [
                    ("lines", lineCount), ("objects created", counts.created), ("objects replaced", counts.replaced),
                    ("objects unchanged", counts.unchanged), ("lines rejected", problems.count),
                    ("warnings", warnings.count),
                ]
                print(Table(["RESULT", .right("COUNT")], rows) { [$0.0, "\($0.1)"] }.text, terminator: "")
            }
            guard problems.count > 0 else { return }
            throw CommandFailure("\(problems.count) of \(lineCount) lines were rejected")
        }

        private struct Summary: Encodable {
            let lines, created, replaced, unchanged, refused, warned: Int
            let problems, warnings: [ImportProblems.Problem]
        }

        /// Maximum number of pages in memory: one per processor, at most four, and of a file those of the next batch,
        /// which are checked while a batch is written. A pipe's lines may arrive slowly, and do not wait for these.
        private static func pagesMax(of source: ImportSource) -> Int {
            min(ProcessInfo.processInfo.activeProcessorCount, 4)
                + (source.bytesTotal == nil ? 0 : ObjectImport.batchCountMax / ObjectLines.pageLinesMax)
        }

        /// - Returns: The number of lines that are not empty.
        private static func read(
            _ source: ImportSource, _ pass: ObjectLines.Pass?, into objects: inout ObjectImport
        ) async throws -> Int {
            var reader = try source.lines()
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            defer { progress.end() }
            var lines = ObjectLines(hasBackend: objects.hasBackend, catalogue: objects.catalogue)
            var checking: [Task<ObjectLines.Checked, Never>] = []
            let pagesMax = Self.pagesMax(of: source)
            var lineCount = 0
            while true {
                let page = try ObjectLines.page(of: &reader)
                lineCount += page.count
                if !page.isEmpty { checking.append(Task.detached { [lines] in lines.checked(page, in: pass) }) }
                guard page.isEmpty || checking.count >= pagesMax else { continue }
                guard !checking.isEmpty else { break }
                let checked = await checking.removeFirst().value
                lines = checked.lines
                for (line, result) in checked.results {
                    switch result {
                    case .success(let object): try objects.add(object, line: line)
                    case .failure(let problem): objects.reject(problem, line: line)
                    }
                }
                progress.show(bytes: reader.bytesRead, lines: lineCount, problems: objects.problems.count)
            }
            try objects.flush()
            return lineCount
        }
    }
}
