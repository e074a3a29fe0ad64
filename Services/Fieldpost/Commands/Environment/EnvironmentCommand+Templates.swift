import ArgumentParser
import Audit
import Backends
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment templates`: the templates of time entries.
    struct Templates: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show or declare the templates of time entries.",
            discussion: """
                Without options it prints the current templates in the file format. FILE is JSON:

                {"lists": [{"name": "absences", "nodes": [{"referenceId": "0100", "title": "Paid leave"}]}],
                 "templates": [{"key": "leave", "name": "Leave", "type": "absence", "contexts": [
                    {"name": "Kind of absence", "list": "absences", "field": "TimeSheetTaskType",
                     "required": true, "preselected": ["0100"], "visible": true, "readOnly": true}]}]}

                A list is one of the file's, whose nodes may have "children", or one of the back end's. A field \
                belongs to the back end's record; a context without a field only narrows the choices after it. A name \
                means the same field in all templates, and once there are entries, a field keeps its name. "required" \
                and "visible" default to true, "readOnly" to false, and "preselected" is empty by default.

                \(vocabularies)

                People get changes at their next poll. Entries of a removed template keep their fields.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(help: ArgumentHelp("Replace all templates by those of this file.", valueName: "file")) var file: String?
        @Flag(help: "Restore the adapter's built-in templates.") var builtIn = false
        @OptionGroup var database: DatabaseOptions

        private static let bytesMax = 1024 * 1024

        private static var vocabularies: String {
            BackendKind.all.filter(\.hasTemplateDeclarations).map(\.vocabulary).map { vocabulary in
                "\(vocabulary.backend): lists \(vocabulary.listNames.joined(separator: ", ")); fields "
                    + vocabulary.fieldNames.joined(separator: ", ")
            }.joined(separator: "\n")
        }

        func validate() throws {
            guard file == nil || !builtIn else { throw ValidationError("give --file or --built-in, not both") }
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            if file != nil || builtIn { try EnvironmentStore.lock(name, on: &connection) }
            let (stored, id) = try EnvironmentStore.existing(name, on: &connection)
            let vocabulary = try Self.vocabulary(of: stored)
            guard file != nil || builtIn else {
                return print(try stored.templates.map(Self.pretty) ?? Self.json(vocabulary.builtIn, pretty: true))
            }
            var changed = stored
            let declared = try file.map(Self.read) ?? vocabulary.builtIn
            changed.templates = file == nil ? nil : try Self.json(declared, pretty: false)
            var problems = declared.problems(for: vocabulary)
            let former = try stored.templates.map(Self.decoded) ?? vocabulary.builtIn
            let renamings = declared.renamings(of: former)
            if !renamings.isEmpty, try Self.hasEntries(id, on: &connection) { problems += renamings }
            guard problems.isEmpty else {
                throw CommandFailure("\(file ?? "--built-in"): \(problems.joined(separator: "; "))")
            }
            try connection.run(
                try EnvironmentStore.save(changed) + [
                    // Starts a full comparison of all people.
                    """
                    UPDATE poll.run SET started_at = '-infinity', full_started_at = NULL
                    WHERE environment_id = \(id.rawValue)
                    """,
                    Administrator.commandLine.audit(
                        .environmentChanged, name, in: id, detail: ["changed": "templates"]),
                ])
            print("\(name) has \(declared.templates.map(\.name).joined(separator: ", "))")
        }

        private static func vocabulary(of stored: StoredEnvironment) throws -> BackendVocabulary {
            guard stored.hasBackend, !stored.backend.isEmpty else {
                throw CommandFailure(
                    "\(stored.name) has no back end in Fieldpost: its integration writes the templates")
            }
            let kind = try BackendKind.named(stored.backend, of: stored.name)
            guard kind.hasTemplateDeclarations else {
                throw CommandFailure("\(stored.name): the adapter \(kind.name) has its own templates")
            }
            return kind.vocabulary
        }

        private static func hasEntries(_ environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
            let rows = try connection.run(
                """
                SELECT EXISTS (SELECT FROM store.object
                    WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.timeEntry))
                """)
            return try rows[0].decode(Bool.self)
        }

        private static func read(_ path: String) throws -> TemplateDeclarations {
            let data = try TextFile.read(path, bytesMax: bytesMax)
            do {
                try JSONCheck.checkKeys(ofFile: Array(data))
                return try JSONDecoder().decode(TemplateDeclarations.self, from: data)
            } catch let problem as JSONError {
                throw CommandFailure("\(path): \(problem)")
            } catch let error as DecodingError {
                throw CommandFailure("\(path): \(error.locatedDescription)")
            }
        }

        private static func json(_ declarations: TemplateDeclarations, pretty: Bool) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = pretty ? [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes] : [.sortedKeys]
            return String(decoding: try encoder.encode(declarations), as: UTF8.self)
        }

        private static func pretty(_ stored: String) throws -> String {
            try json(decoded(stored), pretty: true)
        }

        private static func decoded(_ stored: String) throws -> TemplateDeclarations {
            try JSONDecoder().decode(TemplateDeclarations.self, from: Data(stored.utf8))
        }
    }
}
