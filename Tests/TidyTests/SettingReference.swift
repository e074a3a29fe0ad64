import Foundation
import Model
import TestSupport
import Testing

/// The settings of every service, as printed by `--print-settings`.
enum SettingReference {
    /// As `SettingDescription` writes it.
    private struct Setting: Decodable, Equatable {
        let key: String
        let variable: String
        let defaultValue: String?
        let allowed: String
        let isSecret: Bool
        let isShared: Bool
        let help: String
    }

    private struct Service {
        let name: String
        let settings: [Setting]
    }

    /// Returns tables of the settings of all services, of several services, and of each service.
    static func tables() throws -> String {
        let services = try services()
        let all = services.flatMap(\.settings)
        func owners(_ setting: Setting) -> [String] {
            services.filter { $0.settings.contains(setting) }.map(\.name)
        }
        var common: [Setting] = []
        for setting in all where owners(setting).count > 1 && !common.contains(setting) { common.append(setting) }
        let (everywhere, several) = (
            common.filter { owners($0).count == services.count }, common.filter { owners($0).count < services.count }
        )
        let code = Code(all)
        var parts = ["## Every service", table(everywhere, code)]
        parts += [
            "## Several services", "Services that do not have these pass over them:",
            table(several.filter(\.isShared), code, owners: owners),
            "These are refused by services that do not have them:",
            table(several.filter { !$0.isShared }, code, owners: owners),
        ]
        for service in services {
            let own = service.settings.filter { !common.contains($0) }
            if !own.isEmpty { parts += ["## \(service.name)", table(own, code)] }
        }
        return parts.joined(separator: "\n\n")
    }

    /// The variables of a service's settings, those of librdkafka's properties as what they begin with.
    static func variables(of service: String) throws -> Set<String> { Set(try settings(of: service).map(\.variable)) }

    private static func services() throws -> [Service] {
        try Services.all.map(\.name).sorted().map { Service(name: $0, settings: try settings(of: $0)) }
    }

    private static func settings(of service: String) throws -> [Setting] {
        let answer = try runExecutable(service, ["--print-settings"])
        try #require(answer.status == 0, "\(service): \(answer.errors)")
        return try JSONDecoder().decode([Setting].self, from: Data(answer.output.utf8))
    }

    private static func table(
        _ settings: [Setting], _ code: Code, owners: ((Setting) -> [String])? = nil
    ) -> String {
        let rows = settings.map { setting in
            let value = setting.defaultValue.map { $0.isEmpty ? "none" : "`\($0)`" } ?? "required"
            let names = "`\(setting.key)`<br>`\(setting.variable)`"
            let services = owners.map { [$0(setting).map { "`\($0)`" }.joined(separator: ", ")] } ?? []
            let meaning = code.marked(setting.help) + (setting.isSecret ? "; **secret**" : "")
            return [names, value, short(setting.allowed)] + services + [meaning]
        }
        let head = ["key, variable", "default", "allowed"] + (owners == nil ? [] : ["services"]) + ["meaning"]
        return Documents.table(head, rows)
    }

    /// The default indicates the kind of value.
    private static func short(_ allowed: String) -> String {
        let sorts = ["a text of ", "an integer from ", "a duration from ", ", such as 30s"]
        return sorts.reduce(allowed) { $0.replacing($1, with: "") }
    }

    /// Finds what is to be shown as code in a line of help: names of settings and variables, addresses and paths.
    private struct Code {
        let names: Set<String>

        init(_ settings: [Setting]) { names = Set(settings.flatMap { [$0.key, $0.variable] }) }

        func marked(_ help: String) -> String {
            help.split(separator: " ", omittingEmptySubsequences: false).map { word in
                let end = word.lastIndex { !",;:.".contains($0) } ?? word.startIndex
                guard !word.isEmpty else { return "" }
                let (name, rest) = (String(word[...end]), word[word.index(after: end)...])
                let isCode =
                    names.contains(name) || name.hasPrefix("/") && name.count > 1 || name.contains("://")
                    || name.hasPrefix("FIELDPOST_")
                return isCode ? "`\(name)`\(rest)" : String(word)
            }.joined(separator: " ")
        }
    }
}
