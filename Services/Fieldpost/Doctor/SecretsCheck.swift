import Postgres
import Secrets
import ServiceSettings

/// Checks that all sealed secrets open with the given keys.
struct SecretsCheck: DoctorCheck {
    let options: DatabaseOptions

    func findings() async -> [DoctorFinding] {
        let name = "secrets"
        let keys = Setting.secretKeys.variable
        let secrets: SecretBox
        do {
            secrets = try SecretOptions.box()
        } catch {
            return [.failure(name, "\(error)", do: "correct \(keys) here and in the services' environments")]
        }
        // The PostgreSQL check reports an unavailable database.
        guard var connection = try? options.connect(check: nil) else { return [] }
        var findings: [DoctorFinding] = []
        var count = 0
        for sort in SecretStore.Sort.allCases {
            let counts: (count: Int, unreadable: Int)
            do {
                counts = try SecretStore.counts(of: sort, with: secrets, on: &connection)
            } catch let error as PostgresError where Self.isUnknown(error) {
                continue
            } catch {
                return [.failure("\(name): \(sort.rawValue)", "\(error)", do: "see the findings on PostgreSQL")]
            }
            count += counts.count
            guard counts.unreadable > 0 else { continue }
            findings.append(
                .failure(
                    "\(name): \(sort.rawValue)", "\(counts.unreadable) of \(counts.count) do not open",
                    do: "\(secrets.canSeal ? "add the key they were sealed with to" : "set") \(keys), "
                        + "or set the secrets again (fieldpost environment edit)"))
        }
        guard findings.isEmpty else { return findings }
        return [.good(name, count == 0 ? "none are stored" : "\(count) open with the given keys")]
    }

    /// Whether an older schema lacks the schema, table or column of a sort.
    private static func isUnknown(_ error: PostgresError) -> Bool {
        ["3F000", "42P01", "42703"].contains(error.sqlState)
    }
}
