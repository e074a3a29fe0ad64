import Essentials

/// What services' settings in one environment mean.
enum SettingsRules {
    /// Variables that are no service's settings, but are read by programs of the suite.
    private static let others = ["FIELDPOST_CONFIG", "FIELDPOST_SCHEMA", "FIELDPOST_DATABASE_URL"]

    /// - Parameters:
    ///   - services: Of the catalogue, those that could be asked.
    ///   - variables: The names of the environment's variables.
    static func findings(_ services: [ServiceSettings], of catalogue: [String], variables: [String]) -> [DoctorFinding]
    {
        unknown(services, variables) + absent(services, catalogue) + refused(services) + missing(services)
            + readable(services)
    }

    private static func unknown(_ services: [ServiceSettings], _ variables: [String]) -> [DoctorFinding] {
        let declared = services.flatMap(\.declared)
        // Nothing is known of what services take when none could be asked.
        guard !declared.isEmpty else { return [] }
        let names = others + declared.map(\.variable).filter { !$0.hasSuffix("…") }
        let unknown = variables.filter { name in
            name.hasPrefix("FIELDPOST_") && !others.contains(name)
                && !ServiceSettings.isKnown(name, among: declared)
        }
        return unknown.sorted().map { name in
            let nearest = nearest(to: name, among: names).map { "did you mean \($0)? " } ?? ""
            return .failure(
                "settings: \(name)", "no service has such a setting",
                do: "\(nearest)docs/operators/configuration.md has all; unset it")
        }
    }

    private static func absent(_ services: [ServiceSettings], _ catalogue: [String]) -> [DoctorFinding] {
        let absent = catalogue.filter { name in !services.contains { $0.name == name } }
        if absent.isEmpty { return [] }
        return [
            .warning(
                "settings: programs", "not beside fieldpost, and not asked: \(absent.joined(separator: ", "))",
                do: "run fieldpost doctor where they are installed too, in their environment")
        ]
    }

    /// What several services say is told once.
    private static func refused(_ services: [ServiceSettings]) -> [DoctorFinding] {
        var names: [String: [String]] = [:]
        for service in services {
            if case .refused(let text) = service.outcome { names[text, default: []].append(service.name) }
        }
        return names.sorted { $0.key < $1.key }.map { text, names in
            let subject = text.prefix { $0 != " " }
            return .failure(
                "settings: \(subject)", text,
                do: "correct it where these run, which do not start so: \(names.joined(separator: ", "))")
        }
    }

    private static func missing(_ services: [ServiceSettings]) -> [DoctorFinding] {
        var names: [String: [String]] = [:]
        for service in services {
            if case .missing(let variable) = service.outcome { names[variable, default: []].append(service.name) }
        }
        return names.sorted { $0.key < $1.key }.map { variable, names in
            .warning(
                "settings: \(variable)", "not set here, and there is no default",
                do: "set it where these run: \(names.joined(separator: ", "))")
        }
    }

    private static func readable(_ services: [ServiceSettings]) -> [DoctorFinding] {
        let names = services.filter { if case .readable = $0.outcome { true } else { false } }.map(\.name)
        return names.isEmpty ? [] : [.good("settings", "read by \(names.joined(separator: ", "))")]
    }

    /// The connections to PostgreSQL that one process of each service opens, by its settings: those of workers and
    /// pools, and three beside them that follow, schedule and lock.
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
