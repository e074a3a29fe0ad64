import Essentials
import Foundation
import ProjectDocuments
import TestSupport
import Testing

@testable import KindSchema

/// Random schemas and values have the same verdict as from the Python package `jsonschema`.
@Suite(.ownThreads) struct FuzzTests {
    private static let pairCount = 2_500

    @Test(arguments: Seeds.random(4, thorough: 40, for: "kind schemas")) func jsonschemaHasTheSameVerdicts(
        seed: UInt64
    ) throws {
        var random = RandomSchemas(seed: seed)
        var lines = ""
        var (pairCount, validCount) = (0, 0)
        while pairCount < Self.pairCount {
            let text = random.schema()
            var count = 0
            let (schema, problems) = ValueSchema.read(text, at: "", count: &count)
            // A schema that Fieldpost refuses, because a keyword has no effect.
            guard problems.isEmpty else { continue }
            let value = try SchemaValue(Array(random.value(for: text).json.utf8))
            let isValid = schema.problems(of: value).isEmpty
            pairCount += 1
            validCount += isValid ? 1 : 0
            lines += "{\"schema\":\(text.json),\"value\":\(value.json),\"valid\":\(isValid)}\n"
        }
        try withFolder { folder in
            let file = folder.appending(path: "pairs.ndjson")
            try Data(lines.utf8).write(to: file)
            let process = Process()
            process.executableURL = projectFolder.appending(path: ".build/jsonschema/bin/python")
            process.arguments = [
                projectFolder.appending(path: "Tests/KindSchemaTests/fuzz.py").path, file.path,
            ]
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            #expect((Self.pairCount / 5...Self.pairCount * 4 / 5).contains(validCount))
            #expect(process.terminationStatus == 0, "\(text)")
            #expect(text.hasPrefix("\(Self.pairCount) pairs"), "\(text)")
        }
    }
}
