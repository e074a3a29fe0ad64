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
        var validCount = 0
        while lines.utf8.count < 64 << 20, validCount >= 0 {
            let text = random.schema()
            var count = 0
            let (schema, problems) = ValueSchema.read(text, at: "", count: &count)
            // A schema that Fieldpost refuses, because a keyword has no effect.
            guard problems.isEmpty else { continue }
            let value = random.value(for: text)
            let isValid = schema.problems(of: value).isEmpty
            validCount += 1
            lines += "{\"schema\":\(text.json),\"value\":\(value.json),\"valid\":\(isValid)}\n"
            if validCount == Self.pairCount { break }
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
            #expect(process.terminationStatus == 0, "\(text)")
            #expect(text.hasPrefix("\(Self.pairCount) pairs"), "\(text)")
        }
    }
}
