import Foundation

/// The settings of one service in an environment, as its executable reports them.
struct ServiceSettings: Sendable {
    struct Declared: Decodable, Sendable {
        let variable: String
        /// `nil` if the setting is required.
        let defaultValue: String?
    }

    /// The result of reading the settings.
    enum Outcome: Equatable, Sendable {
        /// The values in effect, by key.
        case readable([String: String])
        /// The variable of a required setting that is not set.
        case missing(String)
        /// The service's error message.
        case rejected(String)
    }

    let name: String
    let declared: [Declared]
    let outcome: Outcome

    /// - Parameters:
    ///   - folder: The folder of the executables.
    ///   - variables: The environment. Variables of other services are not passed to this one.
    /// - Returns: `nil` if the executable does not exist, or does not support these options.
    static func load(_ name: String, in folder: URL, _ variables: [String: String]) -> ServiceSettings? {
        let program = folder.appending(path: name)
        guard let settings = run(program, "--print-settings", variables), settings.status == 0,
            let declared = try? JSONDecoder().decode([Declared].self, from: Data(settings.output.utf8))
        else { return nil }
        let own = variables.filter { name, _ in
            !name.hasPrefix("FIELDPOST_") || name == "FIELDPOST_CONFIG" || isDeclared(name, among: declared)
        }
        guard let values = run(program, "--print-config", own) else { return nil }
        if values.status == 0 {
            return ServiceSettings(name: name, declared: declared, outcome: .readable(Self.values(values.output)))
        }
        let line = values.errors.split(separator: "\n").last.map(String.init) ?? "status \(values.status)"
        let text = line.hasPrefix("\(name): ") ? String(line.dropFirst(name.count + 2)) : line
        let missing = declared.first { $0.defaultValue == nil && text.hasPrefix("\($0.variable) is not set") }
        return ServiceSettings(
            name: name, declared: declared, outcome: missing.map { .missing($0.variable) } ?? .rejected(text))
    }

    /// Whether a variable is declared, or begins with a declared prefix (`FIELDPOST_KAFKA_…`).
    static func isDeclared(_ name: String, among declared: [Declared]) -> Bool {
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
        (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, errors)
        guard (try? process.run()) != nil else { return nil }
        // Standard error is one line, which fits into the pipe's buffer.
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let line = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text, line)
    }
}
