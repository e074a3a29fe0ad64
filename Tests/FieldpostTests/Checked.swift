import Foundation
import TestSupport
import Testing

/// What `fieldpost check` tells of one part, as `KEY: FAULT`, in order.
///
/// - Parameter arguments: Others.
func checked(
    _ part: String, _ environment: borrowing TestEnvironment, _ arguments: String...
) throws -> [String] {
    try differences(part, environment, arguments).compactMap { row in
        (row["key"] as? String).flatMap { key in (row["fault"] as? String).map { "\(key): \($0)" } }
    }.sorted()
}

/// What may still take the differences of a part away, as `fieldpost check` tells it.
func pending(
    _ part: String, _ environment: borrowing TestEnvironment, _ arguments: String...
) throws -> [String] {
    try differences(part, environment, arguments).map { $0["pending"] as? String ?? "nothing" }
}

private func differences(
    _ part: String, _ environment: borrowing TestEnvironment, _ arguments: [String]
) throws -> [[String: Any]] {
    let answer = try fieldpost(
        ["check", "--what", part, "--settle", "0", "--json", "--database", environment.conninfo] + arguments)
    #expect(answer.errors.isEmpty, "\(answer.errors)")
    let object = try JSONSerialization.jsonObject(with: Data(answer.output.utf8))
    let outcome = try #require(object as? [String: Any])
    let found = try #require(outcome["inconsistencies"] as? [[String: Any]])
    #expect(answer.status == (found.isEmpty ? 0 : 1))
    return found
}
