import Foundation
import Model

/// What one service says of its settings, in an environment: its executable is asked, which knows them best.
struct ServiceSettings: Sendable {
    struct Declared: Decodable, Sendable {
        let variable: String
        /// `nil` where a value must be given.
        let defaultValue: String?
    }

    /// What becomes of a service that is started here.
    enum Outcome: Equatable, Sendable {
        /// The values in effect, by key.
        case readable([String: String])
        /// A value that must be given is not: the variable's name.
        case missing(String)
        /// The service's own words.
        case refused(String)
    }

    let name: String
    let declared: [Declared]
    let outcome: Outcome

    /// - Parameters:
    ///   - folder: Where the executables are.
    ///   - variables: The environment; what belongs to other services alone is kept from this one.
    /// - Returns: `nil` when the service is not there, or is no such program.
    static func load(_ name: String, in folder: URL, _ variables: [String: String]) -> ServiceSettings? {
        let program = folder.appending(path: name)
        guard let settings = run(program, "--print-settings", variables), settings.status == 0,
            let declared = try? JSONDecoder().decode([Declared].self, from: Data(settings.output.utf8))
        else { return nil }
        let own = variables.filter { name, _ in
            !name.hasPrefix("FIELDPOST_") || name == "FIELDPOST_CONFIG" || isKnown(name, among: declared)
        }
        guard let values = run(program, "--print-config", own) else { return nil }
        if values.status == 0 {
            return ServiceSettings(name: name, declared: declared, outcome: .readable(Self.values(values.output)))
        }
        let line = values.errors.split(separator: "\n").last.map(String.init) ?? "status \(values.status)"
        let text = line.hasPrefix("\(name): ") ? String(line.dropFirst(name.count + 2)) : line
        let missing = declared.first { $0.defaultValue == nil && text.hasPrefix("\($0.variable) is not set") }
        return ServiceSettings(
            name: name, declared: declared, outcome: missing.map { .missing($0.variable) } ?? .refused(text))
    }

    /// Whether a variable is one of those declared, or begins as one that stands for many (`FIELDPOST_KAFKA_…`).
    static func isKnown(_ name: String, among declared: [Declared]) -> Bool {
        declared.contains { setting in
            setting.variable == name || setting.variable.hasSuffix("…") && name.hasPrefix(setting.variable.dropLast())
        }
    }

    /// Reads the lines of `--print-config`: `key = value  (source)`.
    private static func values(_ text: String) -> [String: String] {
        var values: [String: String] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", omittingEmptySubsequences: true)
            if parts.count >= 3, parts[1] == "=" { values[String(parts[0])] = String(parts[2]) }
        }
        return values
    }

    private static func run(
        _ program: URL, _ argument: String, _ variables: [String: String]
    ) -> (status: Int32, output: String, errors: String)? {
        guard FileManager.default.isExecutableFile(atPath: program.path) else { return nil }
        let process = Process()
        process.executableURL = program
        process.arguments = [argument]
        process.environment = variables
        let (output, errors) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (
            FileHandle.nullDevice, output, errors
        )
        guard (try? process.run()) != nil else { return nil }
        // Errors are one line, which fits into the pipe.
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let line = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text, line)
    }
}
