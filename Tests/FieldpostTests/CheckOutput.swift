import Foundation
import TestSupport
import Testing

/// Returns the inconsistencies that `fieldpost check` reports for one target, as `KEY: FAULT`. They are sorted.
///
/// - Parameter arguments: Further arguments.
func checked(
    _ target: String, _ environment: borrowing TestEnvironment, _ arguments: String...
) throws -> [String] {
    try differences(target, environment, arguments).compactMap { row in
        (row["key"] as? String).flatMap { key in (row["fault"] as? String).map { "\(key): \($0)" } }
    }
}

/// Returns the pending work that may resolve the inconsistencies of a target.
func pending(
    _ target: String, _ environment: borrowing TestEnvironment, _ arguments: String...
) throws -> [String] {
    try differences(target, environment, arguments).map { $0["pending"] as? String ?? "nothing" }
}

private func differences(
    _ target: String, _ environment: borrowing TestEnvironment, _ arguments: [String]
) throws -> [[String: Any]] {
    let result = try fieldpost(
        ["check", "--only", target, "--settle", "0", "--json", "--database", environment.conninfo] + arguments)
    #expect(result.errors.isEmpty, "\(result.errors)")
    let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    let outcome = try #require(object as? [String: Any])
    let rows = try #require(outcome["inconsistencies"] as? [[String: Any]])
    #expect(result.status == (rows.isEmpty ? 0 : 1))
    return rows
}
