import Foundation
import TestSupport
import Testing

/// The commands of every executable with a command line, as printed by `--experimental-dump-help`.
enum CommandReference {
    /// swift-argument-parser's description of a command (ArgumentParserToolInfo), limited to the fields used here.
    private struct Command: Decodable {
        let commandName: String
        let abstract: String?
        let discussion: String?
        let arguments: [Argument]?
        let subcommands: [Command]?

        /// The commands that do something, with their whole names.
        func leaves(below name: String = "") -> [(name: String, command: Command)] {
            let name = name.isEmpty ? commandName : "\(name) \(commandName)"
            let below = (subcommands ?? []).filter { $0.commandName != "help" }
            let nested = below.flatMap { $0.leaves(below: name) }
            return below.isEmpty || !own.isEmpty ? [(name, self)] + nested : nested
        }

        /// The arguments except `--help` and `--version`, which all commands have.
        var own: [Argument] {
            (arguments ?? []).filter { $0.shouldDisplay && !["help", "version"].contains($0.preferredName?.name) }
        }
    }

    private struct Argument: Decodable, Equatable {
        struct Name: Decodable, Equatable {
            let kind: String
            let name: String
        }

        let kind: String
        let shouldDisplay: Bool
        let isOptional: Bool
        let isRepeating: Bool
        let preferredName: Name?
        let valueName: String?
        let defaultValue: String?
        let allValues: [String]?
        let abstract: String?

        /// The argument as typed.
        var text: String {
            let name = preferredName.map { ($0.kind == "long" ? "--" : "-") + $0.name } ?? ""
            let value = "\(valueName ?? "value")".uppercased()
            return switch kind {
            case "positional": value
            case "flag": name
            default: "\(name) \(value)"
            }
        }

        /// The argument in a usage line.
        var usage: String {
            let text = text + (isRepeating ? " …" : "")
            return isOptional ? "[\(text)]" : text
        }

        var row: [String] {
            let words = allValues.map { " One of " + $0.map { "`\($0)`" }.joined(separator: ", ") + "." } ?? ""
            // Paths in the project's folder are shown relative to it.
            let value = defaultValue?.replacing(projectFolder.path + "/", with: "")
            let fallback = value.map { "`\($0)`" } ?? (isOptional ? "" : "required")
            return ["`\(text)`", fallback, (abstract ?? "") + words]
        }
    }

    private struct Program: Decodable { let command: Command }

    /// A row for each command.
    static func overview() throws -> String {
        let rows = try programs().flatMap { program in
            program.leaves().map { name, command in
                ["[`\(name)`](#\(name.replacing(" ", with: "-")))", marked(command.abstract)]
            }
        }
        return Documents.table(["command", "does"], rows)
    }

    /// The names of the commands of `fieldpost` that print JSON.
    static func commandsWithJSON() throws -> [String] {
        try programs().filter { $0.commandName == "fieldpost" }.flatMap { $0.leaves() }
            .filter { _, command in command.own.contains { $0.preferredName?.name == "json" } }.map(\.name)
    }

    /// A section for each command: its usage, discussion and arguments.
    static func reference() throws -> String {
        try programs().map { program in
            let leaves = program.leaves()
            let common = common(of: leaves.map(\.command))
            var parts = ["## \(program.commandName)", program.abstract ?? ""]
            if !common.isEmpty {
                parts += ["Options of several commands, unless a command overrides them:", table(common)]
            }
            var earlier: [(name: String, command: Command)] = []
            for (name, command) in leaves {
                parts += section(name, command, common, earlier)
                earlier.append((name, command))
            }
            return parts.filter { !$0.isEmpty }.joined(separator: "\n\n")
        }.joined(separator: "\n\n")
    }

    /// Returns the options that at least four commands share; a command with a different option of that name lists its
    /// own.
    private static func common(of commands: [Command]) -> [Argument] {
        let options = commands.flatMap(\.own).filter { $0.kind != "positional" }
        return options.reduce(into: []) { common, option in
            let isListed = common.contains { $0.preferredName == option.preferredName }
            if !isListed && options.count(where: { $0 == option }) >= 4 { common.append(option) }
        }
    }

    private static func section(
        _ name: String, _ command: Command, _ common: [Argument], _ earlier: [(name: String, command: Command)]
    ) -> [String] {
        let own = command.own.filter { !common.contains($0) }
        let (options, positions) = (own.filter { $0.kind != "positional" }, own.filter { $0.kind == "positional" })
        var parts = ["### \(name)", "```\n\(usage(name, command.own))\n```", marked(command.abstract)]
        let sameText = earlier.first {
            command.discussion?.isEmpty == false && $0.command.discussion == command.discussion
        }
        let sameOptions = earlier.first {
            options.count > 3
                && $0.command.own.filter { $0.kind != "positional" && !common.contains($0) } == options
        }
        if sameText == nil { parts.append(lines(of: command.discussion)) }
        if let other = sameOptions {
            parts += [table(positions), "Its options are those of [`\(other.name)`](#\(anchor(other.name)))."]
        } else {
            parts.append(table(own))
        }
        return parts
    }

    private static func usage(_ name: String, _ arguments: [Argument]) -> String {
        let needed = arguments.filter { $0.kind == "positional" || !$0.isOptional }
        let words = [name] + (arguments.count > 8 ? needed.map(\.usage) + ["[options]"] : arguments.map(\.usage))
        return words.joined(separator: " ")
    }

    /// Keeps the lines of lists; joins other lines into one paragraph.
    private static func lines(of discussion: String?) -> String {
        (discussion ?? "").components(separatedBy: "\n\n").map { paragraph in
            let lines = paragraph.split(separator: "\n").map(String.init)
            guard lines.first?.hasSuffix(":") == true, lines.count > 1 else {
                return marked(lines.joined(separator: " "))
            }
            return marked(lines[0]) + "\n\n" + lines.dropFirst().map { "- " + marked($0) }.joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    private static func table(_ arguments: [Argument]) -> String {
        if arguments.isEmpty { return "" }
        return Documents.table(
            ["argument", "default", "meaning"],
            arguments.map { argument in
                var row = argument.row
                row[2] = marked(row[2])
                return row
            })
    }

    private static func anchor(_ name: String) -> String { name.replacing(" ", with: "-") }

    /// Returns a line of help with options and variables as code.
    private static func marked(_ text: String?) -> String {
        (text ?? "").replacing(/(^|[ (])(--[a-z][a-z-]*|[A-Z]+_[A-Z_]+)/) { "\($0.1)`\($0.2)`" }
    }

    private static func programs() throws -> [Command] {
        let programs = SourceFile.all.filter { $0.text.contains("await runCommandLine(") }
        let names = try programs.map { file in
            try #require(file.text.firstMatch(of: /commandName: "([a-z-]+)"/), "\(file.path) names its command").1
        }
        try #require(!names.isEmpty)
        return try names.map { name in
            let answer = try runExecutable(String(name), ["--experimental-dump-help"])
            try #require(answer.status == 0, "\(name): \(answer.errors)")
            return try JSONDecoder().decode(Program.self, from: Data(answer.output.utf8)).command
        }
    }
}
