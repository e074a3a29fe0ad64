package import Foundation
import Testing

/// The result of a run of a built executable.
package struct CommandResult: Sendable {
    package let status: Int32
    package let output: String
    package let errors: String

    /// The rows of `--json`.
    package func rows() throws -> [[String: Any]] {
        try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [[String: Any]])
    }
}

/// Runs the built `fieldpost` and waits for its exit. Its output with `--json` must have the documented schema.
///
/// - Parameter environment: All it gets: nothing of the test's own.
package func fieldpost(_ arguments: [String], environment: [String: String] = [:]) throws -> CommandResult {
    let result = try runExecutable("fieldpost", arguments, environment: environment)
    try result.validate(arguments)
    return result
}

package func fieldpost(_ arguments: String..., environment: [String: String] = [:]) throws -> CommandResult {
    try fieldpost(arguments, environment: environment)
}

/// Runs the built `workbench`, like ``fieldpost(_:environment:)``.
package func workbench(_ arguments: String..., environment: [String: String] = [:]) throws -> CommandResult {
    try runExecutable("workbench", arguments, environment: environment)
}

/// Runs a built executable and waits for its exit.
///
/// - Parameter environment: All it gets: nothing of the test's own.
package func runExecutable(
    _ name: String, _ arguments: [String], environment: [String: String] = [:]
) throws -> CommandResult {
    let process = try executable(name, arguments, environment: environment)
    // Files, not pipes: a server that another test starts at the same moment would keep a pipe open.
    var (output, errors) = ("", "")
    try withFolder { folder in
        let files = ["output", "errors"].map { folder.appendingPathComponent($0) }
        for file in files { try Data().write(to: file) }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: files[0])
        process.standardError = try FileHandle(forWritingTo: files[1])
        try process.run()
        process.waitUntilExit()
        output = String(decoding: try Data(contentsOf: files[0]), as: UTF8.self)
        errors = String(decoding: try Data(contentsOf: files[1]), as: UTF8.self)
    }
    return CommandResult(status: process.terminationStatus, output: output, errors: errors)
}

private func executable(_ name: String, _ arguments: [String], environment: [String: String]) throws -> Process {
    let process = Process()
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments.first
    let folder = try #require(bundle.map { URL(filePath: $0).deletingLastPathComponent() })
    process.executableURL = folder.appendingPathComponent(name)
    process.arguments = arguments
    process.environment = environment
    return process
}

/// Runs the built `fieldpost` with an input file that never ends, and kills it (signal 9) after `body`.
///
/// - Parameters:
///   - arguments: Returns the arguments for the file's path.
///   - body: Runs before the kill, for example to wait until the command has processed the input.
package func killFieldpost(
    reading text: Data, _ arguments: (String) -> [String], environment: [String: String], _ body: () throws -> Void
) throws {
    try withFolder { folder in
        let pipe = folder.appendingPathComponent("pipe")
        try #require(unsafe mkfifo(pipe.path, 0o600) == 0)
        try killFieldpost(arguments(pipe.path), environment: environment) {
            let writer = try FileHandle(forWritingTo: pipe)
            try writer.write(contentsOf: text)
            try body()
        }
    }
}

/// Runs the built `fieldpost`, and kills it (signal 9) after `body`.
package func killFieldpost(_ arguments: [String], environment: [String: String], _ body: () throws -> Void) throws {
    let process = try executable("fieldpost", arguments, environment: environment)
    try process.run()
    defer {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
    try body()
}

/// Waits for a condition.
package func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    let end = ContinuousClock.now + patienceMax
    while try !condition() {
        guard ContinuousClock.now < end else {
            Issue.record("not in time: \(what)")
            return
        }
        sched_yield()
    }
}

/// Runs a body with a temporary folder, then removes the folder.
package func withFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fieldpost-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
}
