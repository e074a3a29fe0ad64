import Foundation

extension LocalCluster {
    /// A difference that `fieldpost check` reports.
    package struct Difference: Decodable, Sendable, CustomStringConvertible {
        package let environment: String
        package let part: String
        package let key: String
        package let fault: String
        package let pending: String?

        package var description: String {
            "\(environment): \(part): \(key): \(fault)" + (pending.map { " (may be in flight: \($0))" } ?? "")
        }
    }

    /// Runs `fieldpost check` and returns the differences that it reports.
    ///
    /// - Parameter settle: The maximum time to wait for changes in flight, when something differs at the first scan.
    /// - Throws: `ClusterFailure` when the check itself fails.
    package func differences(settle: Duration = .seconds(90)) async throws -> [Difference] {
        struct Outcome: Decodable { let inconsistencies: [Difference] }
        let arguments = ["check", "--json", "--settle", "\(settle.components.seconds)"]
        let process = try startCommand(arguments, log: "check-\(UUID().uuidString)")
        let end = await onOwnThread { process.waitForEnd(within: settle + .seconds(240)) }
        let text = process.logTail(bytesMax: 10_000_000)
        guard let outcome = try? JSONDecoder().decode(Outcome.self, from: Data(text.utf8)) else {
            process.kill9()
            throw ClusterFailure("fieldpost check failed (\(end.map { "\($0)" } ?? "timeout")): \(text.suffix(4_000))")
        }
        return outcome.inconsistencies
    }
}
