import Postgres
import Secrets
import ServiceSettings

/// Whether what is kept sealed opens with the keys given.
struct SecretsCheck: DoctorCheck {
    let options: DatabaseOptions

    func findings() async -> [DoctorFinding] {
        let name = "secrets"
        let keys = Setting.secretKeys.variable
        let secrets: SecretBox
        do {
            secrets = try SecretOptions.box()
        } catch {
            return [.failure(name, "\(error)", do: "correct \(keys) here and wherever services run")]
        }
        // A database that does not answer is told of by another check.
        guard var connection = try? options.connect(check: nil) else { return [] }
        var findings: [DoctorFinding] = []
        var count = 0
        for sort in SecretStore.Sort.allCases {
            let look: (count: Int, unreadable: Int)
            do {
                look = try SecretStore.look(at: sort, with: secrets, on: &connection)
            } catch let error as PostgresError where Self.isUnknown(error) {
                continue
            } catch {
                return [.failure("\(name): \(sort.rawValue)", "\(error)", do: "see what is said of PostgreSQL")]
            }
            count += look.count
            guard look.unreadable > 0 else { continue }
            findings.append(
                .failure(
                    "\(name): \(sort.rawValue)", "\(look.unreadable) of \(look.count) do not open",
                    do: "\(secrets.canSeal ? "add the key they were sealed with to" : "set") \(keys), "
                        + "or give them anew (fieldpost environment edit)"))
        }
        guard findings.isEmpty else { return findings }
        return [.good(name, count == 0 ? "none are stored" : "\(count) open with the keys given")]
    }

    /// A sort that this schema does not know yet has none: the schema, the table or the column is not there.
    private static func isUnknown(_ error: PostgresError) -> Bool {
        ["3F000", "42P01", "42703"].contains(error.sqlState)
    }
}
