import Foundation
import Model
import TestSupport
import Testing

/// The golden vectors of the picker, for this library and for the program that other languages can follow.
@Suite(.ownThreads) struct PickerVectorTests {
    private static let names = ["first-model", "fixed", "problems", "sections"]

    private static func path(_ name: String) -> String {
        projectFolder.appendingPathComponent("examples/picker/\(name).json").path
    }

    @Test func everyVectorFileIsTested() throws {
        let folder = projectFolder.appendingPathComponent("examples/picker").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == Self.names.map { $0 + ".json" })
    }

    @Test(arguments: names) func libraryMatchesVectors(name: String) throws {
        let data = try Data(contentsOf: URL(filePath: Self.path(name)))
        let vector = try JSONDecoder().decode(PickerVector.self, from: data)
        let picker = ReportingPicker(vector.objects.reportingObjects, templates: vector.user.reportingTemplates)
        #expect(picker.templates.map(\.id) == vector.offered)
        #expect(!vector.cases.isEmpty)
        for item in vector.cases {
            let expected = item.expected
            let form = picker.form(for: item.entry)
            if let choices = expected.choices {
                #expect(form.choices.map(PickerVector.Choice.init) == choices, "\(item.title)")
            }
            if let selections = expected.selections { #expect(form.selections == selections, "\(item.title)") }
            if let problems = expected.problems {
                #expect(form.problems.map(PickerVector.Problem.init) == problems, "\(item.title)")
            }
            if let query = item.query {
                let found = form.choices.map { $0.options(matching: query).map(\.id) }
                #expect(found == expected.found, "\(item.title)")
            }
            if let recent = item.recent, let countMax = item.countMax {
                let suggestions = form.choices.map { $0.suggestions(from: recent, countMax: countMax).map(\.id) }
                #expect(suggestions == expected.suggestions, "\(item.title)")
            }
        }
    }

    @Test func everyProblemHasAVector() throws {
        let codes = try Self.names.flatMap { name in
            let data = try Data(contentsOf: URL(filePath: Self.path(name)))
            return try JSONDecoder().decode(PickerVector.self, from: data).cases.flatMap { item in
                (item.expected.problems ?? []).map(\.code)
            }
        }
        #expect(Set(codes) == Set(ReportingProblem.Code.allCases.map(\.rawValue)))
    }

    /// A changed expectation fails, so the comparison compares.
    @Test(arguments: [[], [#"Tiles", "depth": 0"#, #"Tiles", "depth": 1"#], ["Roof is missing", "Roof is absent"]])
    func exampleProgramMatchesVectors(change: [String]) throws {
        try withFolder { folder in
            var paths = Self.names.map(Self.path)
            if !change.isEmpty {
                let text = try String(contentsOfFile: Self.path("problems"), encoding: .utf8)
                let changed = text.replacing(change[0], with: change[1])
                #expect(changed != text)
                paths = [folder.appendingPathComponent("changed.json").path]
                try Data(changed.utf8).write(to: URL(filePath: paths[0]))
            }
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            let program = projectFolder.appendingPathComponent("examples/picker.py").path
            process.arguments = ["python3", program] + paths
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            #expect(process.terminationStatus == (change.isEmpty ? 0 : 1), "\(text)")
            #expect(text.contains("expected") != change.isEmpty, "\(text)")
        }
    }
}

/// A file of golden vectors.
private struct PickerVector: Decodable {
    struct Objects: Decodable {
        let templates: [String: ReportingTemplate]
        let contexts: [String: ReportingContext]
        let nodes: [String: ReportingTreeNode]

        enum CodingKeys: String, CodingKey {
            case templates = "ReportingTemplate"
            case contexts = "ReportingContext"
            case nodes = "ReportingTreeNode"
        }

        var reportingObjects: ReportingObjects {
            ReportingObjects(
                templates: Self.byID(templates), contexts: Self.byID(contexts), nodes: Self.byID(nodes))
        }

        private static func byID<Fields>(_ fields: [String: Fields]) -> [UUID: Fields] {
            var result: [UUID: Fields] = [:]
            for (text, fields) in fields {
                if let id = UUID(uuidString: text) { result[id] = fields }
            }
            return result
        }
    }

    struct Case: Decodable {
        let title: String
        let entry: TimeEntry
        let query: String?
        let recent: [TimeEntry]?
        let countMax: Int?
        let expected: Expected
    }

    struct Expected: Decodable {
        let choices: [Choice]?
        let selections: [ReportingSelection]?
        let problems: [Problem]?
        let found: [[UUID]]?
        let suggestions: [[UUID]]?
    }

    struct Choice: Decodable, Equatable {
        let context: UUID
        let name: String
        let required, visible, changeable, preselected: Bool
        let selected, rejected: [UUID]
        let sections: [Section]
    }

    struct Section: Decodable, Equatable {
        let name: String
        let shown: Int
        let options: [Option]
    }

    struct Option: Decodable, Equatable {
        let node: UUID
        let title: String
        let depth: Int
    }

    struct Problem: Decodable, Equatable {
        let code: String
        let context, node: UUID?
        let message: String
    }

    let user: User
    let objects: Objects
    let offered: [UUID]
    let cases: [Case]
}

extension PickerVector.Choice {
    init(_ choice: ReportingForm.Choice) {
        self.init(
            context: choice.id, name: choice.name, required: choice.isRequired, visible: choice.isVisible,
            changeable: choice.isChangeable, preselected: choice.isPreselected, selected: choice.selected,
            rejected: choice.rejected,
            sections: choice.sections.map { section in
                PickerVector.Section(
                    name: section.name, shown: section.shownCount,
                    options: section.options.map { .init(node: $0.id, title: $0.title, depth: $0.depth) })
            })
    }
}

extension PickerVector.Problem {
    init(_ problem: ReportingProblem) {
        self.init(
            code: problem.code.rawValue, context: problem.context, node: problem.node, message: problem.message)
    }
}
