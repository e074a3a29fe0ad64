import ArgumentParser
import CommandLineSupport
import Essentials
import Foundation
import KindSchema
import Model

extension SchemaCommand {
    struct Validate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Validate a schema file.",
            discussion: """
                A schema file declares an environment's own kinds, in YAML or JSON. The command lists the kinds, or \
                each problem with its line. The command needs no settings.
                """)
        @Argument(help: "The schema file.", completion: .file()) var file: String

        func run() throws {
            let kinds = try KindsFile.kinds(file).kinds.values.sorted { $0.name < $1.name }
            let table = Table(["KIND", "REALMS", "FIELDS", "READ-ONLY", "TOPIC"], kinds, empty: "no kinds") { kind in
                [
                    kind.name, kind.realms.map(\.rawValue).sorted().joined(separator: ", "),
                    "\(kind.fieldNames.count)", kind.readOnlyNames.joined(separator: ", "), kind.topic ?? "-",
                ]
            }
            print(table.text, terminator: "")
        }
    }

    struct Diff: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare two versions of a schema file.",
            discussion: """
                A change is additive, restricting (people may write less) or breaking (existing objects, or changes \
                that wait on devices, may not fit). The exit status is 1 if a change is breaking. The command needs no \
                settings.
                """)
        @Argument(help: "The earlier version.", completion: .file()) var old: String
        @Argument(help: "The later version.", completion: .file()) var new: String

        func run() throws {
            let changes = try KindsFile.kinds(old).changes(to: try KindsFile.kinds(new))
            print(KindChange.table(changes, empty: "no changes").text, terminator: "")
            if changes.contains(where: { $0.effect == .breaking }) { throw ExitCode(1) }
        }
    }

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Translate schemas of other systems.", subcommands: [ImportRealm.self])
    }

    struct ImportRealm: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "realm", abstract: "Translate the schemas of an app that used Realm.",
            discussion: """
                Prints a schema file, and on standard error a table of what was mapped and what a person must decide. \
                A path is a folder with the schema.json and relationships.json of App Services, one such schema.json, \
                or a list of classes as in Realm's JavaScript SDK. The command needs no settings.
                """)
        @Argument(help: "Files and folders.", completion: .file()) var paths: [String]

        func run() throws {
            var source = RealmSchemaImport(builtIn: Kind.allCases.map(\.rawValue))
            for path in try paths.flatMap(Self.files) { try Self.add(path, to: &source) }
            let file = source.file()
            let notes = source.notes.sorted { ($0.isDecision ? 0 : 1, $0.source) < ($1.isDecision ? 0 : 1, $1.source) }
            let table = Table(["STATE", "SOURCE", "NOTE"], notes, empty: "no notes") { note in
                [note.isDecision ? "decide" : "mapped", note.source, note.text]
            }
            print(try KindsFile.yaml(file), terminator: "")
            printError(table.text)
        }

        /// Returns the files of a path: in a folder, each `schema.json`.
        private static func files(_ path: String) throws -> [String] {
            guard let kind = try? FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType else {
                throw CommandFailure("\(path) does not exist")
            }
            guard kind == .typeDirectory else { return [path] }
            let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
            let files = names.filter { $0 == "schema.json" || $0.hasSuffix("/schema.json") }.sorted()
            guard !files.isEmpty else { throw CommandFailure("\(path) has no file schema.json") }
            return files.map { "\(path)/\($0)" }
        }

        private static func add(_ path: String, to source: inout RealmSchemaImport) throws {
            let (file, relationships) = (try KindsFile(path), try relationships(of: path))
            do throws(SchemaProblem) {
                guard file.value.values == nil else { return try source.add(classes: file.value) }
                try source.add(schema: file.value, relationships: relationships?.value)
            } catch {
                throw CommandFailure(file.text(error))
            }
        }

        private static func relationships(of path: String) throws -> KindsFile? {
            let links = path.replacing(/schema\.json$/, with: "relationships.json")
            guard links != path, FileManager.default.fileExists(atPath: links) else { return nil }
            return try KindsFile(links)
        }
    }
}
