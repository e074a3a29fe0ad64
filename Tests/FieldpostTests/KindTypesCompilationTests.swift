import Essentials
import Foundation
import KindSchema
import Model
import TestSupport
import Testing

@testable import Fieldpost

/// The compilers of apps accept the generated types, and refuse writes that the gateway would reject.
@Suite(.ownThreads) struct KindTypesCompilationTests {
    private static let folder = projectFolder.appending(path: "Tests/FieldpostTests/Types")

    @Test func forbiddenWritesAreErrorsOfSwift() throws {
        let new = "Kinds.Inspection.New(site: \"a\", state: .sent, level: nil)"
        let valid = [
            new, "\(new).inTeam(UUID(), id: UUID())", "Kinds.Inspection.Change(level: .null)",
            "Kinds.Kind.New(in: true)", "Kinds.NewKind.Change(a: .to(\"\"))",
            "Kinds.String_.delete(UUID(), in: .common)",
        ]
        let invalid = [
            "Kinds.Inspection.New(state: .sent, level: nil)",
            "Kinds.Inspection.New(site: \"a\", state: .sent, level: nil, receipt: UUID())",
            "Kinds.Inspection.New(site: \"a\", state: .sent, level: nil, approval: \"b\")",
            "\(new).inCommon(id: UUID())", "Kinds.Inspection.Change(site: \"a\")",
            "Kinds.Inspection.Change(state: FieldUpdate.null)", "Kinds.Array.New()", "Kinds.NewKind.New()",
            "Kinds.Kind.delete(UUID(), in: .common)",
        ]
        let lines = (valid + invalid).enumerated().map { "let value\($0.offset) = \($0.element)" }
        let problems = try Self.swiftProblems(lines, with: [Self.folder.appending(path: "Kinds.swift")])
        for (index, expression) in (valid + invalid).enumerated() {
            let isRefused = problems.contains("Program.swift:\(index + 4):")
            #expect(isRefused == (index >= valid.count), "\(expression)\n\(problems)")
        }
    }

    @Test func forbiddenWritesAreErrorsOfTypeScript() throws {
        let program = """
            import type { Fieldpost, FieldpostObject } from "./fieldpost.js";
            import { changeInspection, createInspection, deleteInspection } from "./kinds";
            import type { Inspection } from "./kinds";
            import * as kinds from "./kinds";
            export async function use(client: Fieldpost, email: string, object: FieldpostObject<Inspection>) {
                await createInspection(client, `/users/${email}`, "id", { site: "a", state: "sent", level: null });
                await changeInspection(client, object, { state: "draft", day: null });
                await deleteInspection(client, object);
                const { site, state } = client.objects<Inspection>("Inspection")[0].fields;
                const texts: [string, boolean] = [site ?? "", state === "sent" || state === "later"];
                // @ts-expect-error: `site` is required.
                await createInspection(client, `/users/${email}`, "id", { state: "sent", level: null });
                // @ts-expect-error: no person can create it there.
                await createInspection(client, "/common", "id", { site: "a", state: "sent", level: null });
                // @ts-expect-error: not one of the values.
                await changeInspection(client, object, { state: "later" });
                // @ts-expect-error: a required field.
                await changeInspection(client, object, { state: null });
                // @ts-expect-error: read-only.
                await changeInspection(client, object, { receipt: null });
                // @ts-expect-error: people cannot change it.
                await changeInspection(client, object, { site: "a" });
                // @ts-expect-error: people cannot create it.
                kinds.createArray;
                // @ts-expect-error: people cannot delete it.
                kinds.deleteKind;
                return texts;
            }
            """
        let sample = try String(contentsOf: Self.folder.appending(path: "kinds.ts"), encoding: .utf8)
        #expect(try Self.typeScriptProblems([("kinds.ts", sample), ("program.ts", program)]) == "")
    }

    @Test func examplesOfTheDocumentCompile() throws {
        let page = try String(contentsOf: projectFolder.appending(path: "docs/apps/own-kinds.md"), encoding: .utf8)
        func example(_ language: String) throws -> String {
            let blocks = try Regex("```\(language)\n(.+?)```").dotMatchesNewlines()
            return String(try #require(page.firstMatch(of: blocks)?.output[1].substring))
        }
        try withFolder { folder in
            let (file, output) = (folder.appending(path: "kinds.yaml"), folder.appending(path: "Kinds.swift"))
            try Data(try example("yaml").utf8).write(to: file)
            let swift = try fieldpost("schema", "generate", "swift", file.path).output
            try Data(swift.utf8).write(to: output)
            let body = "func use(state: inout DeviceState, id: UUID) throws {\n\(try example("swift"))}"
            #expect(try Self.swiftProblems(["import Model", body], with: [output]) == "")
            let program = """
                import { newID, type Fieldpost } from "./fieldpost.js";
                import { type Inspection, changeInspection, createInspection } from "./kinds";
                export async function use(client: Fieldpost, email: string) {
                \(try example("ts"))}
                """
            let kinds = try fieldpost("schema", "generate", "typescript", file.path).output
            #expect(try Self.typeScriptProblems([("kinds.ts", kinds), ("program.ts", program)]) == "")
        }
    }

    @Test(arguments: Seeds.random(1, thorough: 4, for: "types of random kinds"))
    func typesOfRandomKindsCompile(seed: UInt64) throws {
        var random = RandomSchemas(seed: seed)
        let files = try (0..<8).map { _ in
            let file = random.kindsFile()
            return TypedKind.all(in: file, try EnvironmentKinds(file))
        }
        try withFolder { folder in
            var sources: [URL] = []
            for (index, kinds) in files.enumerated() {
                let url = folder.appending(path: "Kinds\(index).swift")
                // Several files in one module.
                let source = TypeLanguage.swift.source(of: kinds)
                try Data(source.replacing("enum Kinds {", with: "enum Kinds\(index) {").utf8).write(to: url)
                sources.append(url)
            }
            let problems = try Self.swiftProblems([], with: sources)
            #expect(problems == "")
        }
        let texts = files.enumerated().map { ("kinds\($0.offset).ts", TypeLanguage.typescript.source(of: $0.element)) }
        #expect(try Self.typeScriptProblems(texts) == "")
    }

    // MARK: Compilers

    /// Compiles lines with generated files, as an app outside of this package.
    private static func swiftProblems(_ lines: [String], with files: [URL]) throws -> String {
        try withFolder { folder in
            let program = folder.appending(path: "Program.swift")
            let imports = ["import DeviceClient", "import Essentials", "import Foundation"]
            try Data((imports + lines).joined(separator: "\n").utf8).write(to: program)
            let modules = projectFolder.appending(path: ".build/debug/Modules").path
            let options = [
                "-typecheck", "-parse-as-library", "-swift-version", "6", "-package-name", "app", "-module-name", "App",
            ]
            return try run("swiftc", options + ["-I", modules] + ([program] + files).map(\.path))
        }
    }

    private static func typeScriptProblems(_ files: [(name: String, text: String)]) throws -> String {
        try withFolder { folder in
            for (name, text) in files { try Data(text.utf8).write(to: folder.appending(path: name)) }
            try FileManager.default.copyItem(
                at: projectFolder.appending(path: "Services/Onboarding/App/fieldpost.d.ts"),
                to: folder.appending(path: "fieldpost.d.ts"))
            let options = ["--strict", "--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution"]
            return try run("tsc", options + ["node"] + files.map { folder.appending(path: $0.name).path })
        }
    }

    /// Runs a compiler and returns its messages; empty if it succeeded.
    private static func run(_ command: String, _ arguments: [String]) throws -> String {
        try withFolder { folder in
            let messages = folder.appending(path: "messages")
            try Data().write(to: messages)
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = [command] + arguments
            process.standardOutput = try FileHandle(forWritingTo: messages)
            process.standardError = process.standardOutput
            try process.run()
            process.waitUntilExit()
            let text = try String(contentsOf: messages, encoding: .utf8)
            return process.terminationStatus == 0 ? "" : text + "status \(process.terminationStatus)"
        }
    }
}

extension RandomSchemas {
    private static let kindNames = [
        "Array", "Date", "Error", "FieldUpdate", "Foundation", "Inspection", "InspectionChange", "Kind", "Kinds", "New",
        "NewInspection", "Object", "Promise", "Self", "String", "Swift", "Type", "UUID",
    ]
    private static let fieldNames = [
        "class", "day", "default", "fields", "func", "in", "init", "kindName", "new", "rawValue", "self", "some",
        "string", "type", "uUID", "value", "var", "x_",
    ]

    private mutating func subset(_ names: [String]) -> [String] {
        let chosen = names.filter { _ in number(3) == 0 }
        return chosen.isEmpty ? [names[number(names.count)]] : chosen
    }

    /// Returns a schema of a field. Some random schemas are refused.
    private mutating func acceptedSchema() -> SchemaValue {
        while true {
            let schema = schema(depth: 1)
            let kind = SchemaValue.object([
                .init("realms", .list([.text("user")])), .init("properties", .object([.init("a", schema)])),
            ])
            if (try? EnvironmentKinds(.object([.init("kinds", .object([.init("A", kind)]))]))) != nil { return schema }
        }
    }

    /// Returns a file with random kinds, fields and permissions, whose names collide with those of the languages.
    fileprivate mutating func kindsFile() -> SchemaValue {
        func list(_ names: [String]) -> SchemaValue { .list(names.map { .text($0) }) }
        let kinds = subset(Self.kindNames).map { name -> SchemaValue.Member in
            let fields = subset(Self.fieldNames)
            let readOnly = fields.filter { _ in number(6) == 0 }
            let properties = fields.map { field -> SchemaValue.Member in
                var members = acceptedSchema().members ?? []
                if readOnly.contains(field) { members.append(.init("readOnly", .bool(true))) }
                let description = "A \n*/ \u{2028}/* \u{600}*/ \(field)\r\"\\"
                if number(3) == 0 { members.append(.init("description", .text(description))) }
                return .init(field, .object(members))
            }
            let writable = fields.filter { !readOnly.contains($0) }
            let permissions = (0..<number(4)).map { _ -> SchemaValue in
                var members = [
                    SchemaValue.Member("who", list(subset(["owner", "member", "manager", "person"]))),
                    .init("may", list(subset(["create", "change", "delete"]))),
                ]
                if !writable.isEmpty, number(2) == 0 { members.append(.init("fields", list(subset(writable)))) }
                return .object(members)
            }
            return .init(
                name,
                .object([
                    .init("realms", list(["user", "team", "common", "manager"])),
                    .init("properties", .object(properties)),
                    .init("required", list(writable.filter { _ in number(4) == 0 })),
                    .init("permissions", .list(permissions)),
                ]))
        }
        return .object([.init("kinds", .object(kinds))])
    }
}
