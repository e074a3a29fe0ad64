import Essentials

/// Findings on the services' settings in one environment.
enum SettingsRules {
    /// Variables that are not settings of services, but are read by other programs of the installation.
    private static let others = ["FIELDPOST_CONFIG", "FIELDPOST_SCHEMA", "FIELDPOST_DATABASE_URL"]

    /// - Parameters:
    ///   - services: The services of the catalogue that reported their settings.
    ///   - variables: The names of the environment's variables.
    static func findings(_ services: [ServiceSettings], of catalogue: [String], variables: [String]) -> [DoctorFinding]
    {
        unknown(services, variables) + absent(services, catalogue) + rejected(services) + missing(services)
            + readable(services)
    }

    private static func unknown(_ services: [ServiceSettings], _ variables: [String]) -> [DoctorFinding] {
        let declared = services.flatMap(\.declared)
        // Without any service's settings every variable would be unknown.
        guard !declared.isEmpty else { return [] }
        let names = others + declared.map(\.variable).filter { !$0.hasSuffix("…") }
        let unknown = variables.filter { name in
            name.hasPrefix("FIELDPOST_") && !others.contains(name)
                && !ServiceSettings.isDeclared(name, among: declared)
        }
        return unknown.sorted().map { name in
            let nearest = nearest(to: name, among: names).map { "did you mean \($0)? " } ?? ""
            return .failure(
                "settings: \(name)", "unknown setting",
                do: "\(nearest)unset it, or see docs/operators/configuration.md")
        }
    }

    private static func absent(_ services: [ServiceSettings], _ catalogue: [String]) -> [DoctorFinding] {
        let absent = catalogue.filter { name in !services.contains { $0.name == name } }
        if absent.isEmpty { return [] }
        return [
            .warning(
                "settings: programs", "not found next to fieldpost, and not checked: \(absent.joined(separator: ", "))",
                do: "run fieldpost doctor also where they are installed, in their environment")
        ]
    }

    /// Reports an error of several services once.
    private static func rejected(_ services: [ServiceSettings]) -> [DoctorFinding] {
        var names: [String: [String]] = [:]
        for service in services {
            if case .rejected(let text) = service.outcome { names[text, default: []].append(service.name) }
        }
        return names.sorted { $0.key < $1.key }.map { text, names in
            let subject = text.prefix { $0 != " " }
            return .failure(
                "settings: \(subject)", text,
                do: "correct it for these services, which do not start: \(names.joined(separator: ", "))")
        }
    }

    private static func missing(_ services: [ServiceSettings]) -> [DoctorFinding] {
        var names: [String: [String]] = [:]
        for service in services {
            if case .missing(let variable) = service.outcome { names[variable, default: []].append(service.name) }
        }
        return names.sorted { $0.key < $1.key }.map { variable, names in
            .warning(
                "settings: \(variable)", "required, but not set here",
                do: "set it for these services: \(names.joined(separator: ", "))")
        }
    }

    private static func readable(_ services: [ServiceSettings]) -> [DoctorFinding] {
        let names = services.filter { if case .readable = $0.outcome { true } else { false } }.map(\.name)
        return names.isEmpty ? [] : [.good("settings", "read by \(names.joined(separator: ", "))")]
    }

    /// The number of PostgreSQL connections that one process of each service opens, by its settings: those of workers
    /// and pools, and three for listening, scheduling and locking.
    static func connectionCount(_ services: [ServiceSettings]) -> Int? {
        let values = services.compactMap { if case .readable(let values) = $0.outcome { values } else { nil } }
        guard !values.isEmpty else { return nil }
        return values.map { values in
            3
                + values.filter { $0.key == "worker.count" || $0.key.hasSuffix("pool.size") }
                .compactMap { Int($0.value) }.reduce(0, +)
        }
        .reduce(0, +)
    }
}
