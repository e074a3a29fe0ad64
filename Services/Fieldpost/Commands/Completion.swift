import ArgumentParser
import Essentials
import FoundationEssentials
import Model
import Postgres
import ServiceSettings

/// The candidates that shells complete. Queries are bounded, and a database that is unavailable completes nothing.
enum Completion {
    static let groups = CompletionKind.list(Set(Topics.all.flatMap(\.consumers)).sorted())

    /// Names of topics, those of own kinds included.
    static let topics = CompletionKind.custom { words, _, prefix in
        Topics.all.map(\.name).filter { $0.hasPrefix(prefix) }
            + candidates(
                words,
                """
                SELECT DISTINCT topic FROM realm.own_kind WHERE starts_with(topic, \(prefix)) ORDER BY topic
                LIMIT \(countMax)
                """)
    }

    /// Names of environments.
    static let environments = CompletionKind.custom { words, _, prefix in
        candidates(
            words,
            """
            SELECT name FROM realm.environment WHERE starts_with(name, \(prefix)) ORDER BY name LIMIT \(countMax)
            """)
    }

    /// Deferred keys, or the ids of their objects if the text does not begin like a key.
    static let keys = CompletionKind.custom { words, _, prefix in
        let isKey = prefix.isEmpty || prefix.hasPrefix("/")
        let beginning = isKey ? prefix : prefix.lowercased()
        return candidates(
            words,
            """
            SELECT DISTINCT k.candidate FROM (
                SELECT CASE WHEN \(isKey) THEN key ELSE right(key, 36) END AS candidate FROM pipeline.parked
                LIMIT \(keysReadMax)
            ) k WHERE starts_with(k.candidate, \(beginning)) ORDER BY k.candidate LIMIT \(countMax)
            """)
    }

    private static let countMax: Int64 = 100
    /// Maximum number of deferred keys that are read.
    private static let keysReadMax: Int64 = 100_000

    /// - Parameter arguments: The arguments of the command line, which may have `--database`.
    private static func candidates(_ arguments: [String], _ query: Statement) -> [String] {
        let option = arguments.firstIndex(of: "--database").flatMap { arguments.dropFirst($0 + 1).first }
        let url = option ?? ProcessInfo.processInfo.environment[Setting.databaseURL.variable] ?? ""
        guard !url.isEmpty else { return [] }
        var limits = Limits(lockMax: .milliseconds(500))
        (limits.connectMax, limits.statementMax) = (.seconds(2), .seconds(1))
        do {
            var connection = try Connection(url, limits: limits)
            return try connection.run(query).decode(String.self)
        } catch {
            return []
        }
    }
}
