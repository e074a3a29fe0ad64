import Postgres
import TenantMigration
import Tenants

/// Checks the identity provider and back end of each environment, as `environment check` does.
struct EnvironmentsCheck: DoctorCheck {
    let options: DatabaseOptions
    /// The name of one environment; `nil`: all, up to ``countMax``.
    let only: String?

    /// Maximum number of environments whose external systems one command calls.
    static let countMax = 100

    func findings() async -> [DoctorFinding] {
        let (checks, unread, skipped): ([EnvironmentCheck], [DoctorFinding], Int)
        do {
            (checks, unread, skipped) = try load()
        } catch let error as PostgresError where error.isConnectionLost {
            // The PostgreSQL check reports it.
            return []
        } catch {
            return [.failure("environments", "unreadable: \(error)", do: "see the finding PostgreSQL: privileges")]
        }
        if checks.isEmpty, unread.isEmpty, let only {
            return [.failure("environment \(only)", "does not exist", do: "see fieldpost environment list")]
        }
        var findings = unread
        for check in checks {
            findings += await check.findings().map { Self.finding($0, of: check.stored.name) }
        }
        if skipped > 0 {
            findings.append(
                .warning(
                    "environments", "\(skipped) more were not checked",
                    do: "check one with: fieldpost doctor --environment"))
        }
        return findings
    }

    /// - Returns: The checks to run, failures to read the configuration, and the number of skipped environments.
    private func load() throws -> (checks: [EnvironmentCheck], unread: [DoctorFinding], skipped: Int) {
        var connection = try options.connect(check: nil)
        let names = try EnvironmentStore.names(on: &connection).filter { only == nil || only == $0 }
        var (checks, unread): ([EnvironmentCheck], [DoctorFinding]) = ([], [])
        do {
            unread += try moves(on: &connection)
        } catch let error as PostgresError where error.isConnectionLost {
            throw error
        } catch {
            unread.append(.failure("moves", "unreadable: \(error)", do: "see the finding PostgreSQL: privileges"))
        }
        for name in names.prefix(Self.countMax) {
            do {
                if let check = try EnvironmentCheck.load(name, on: &connection) { checks.append(check) }
            } catch let error as PostgresError where error.isConnectionLost {
                throw error
            } catch {
                unread.append(
                    .failure(
                        "environment \(name)", "unreadable: \(error)",
                        do: "see fieldpost environment show \(name), and the finding PostgreSQL: privileges"))
            }
        }
        return (checks, unread, max(0, names.count - Self.countMax))
    }

    /// Write-blocked environments.
    private func moves(on connection: inout Connection) throws -> [DoctorFinding] {
        try MoveListing.all(on: &connection).filter { $0.state == .held && (only == nil || only == $0.environment) }
            .map { move in
                .warning(
                    "environment \(move.environment)",
                    "write-blocked since \(move.since) for its move",
                    do: "see fieldpost environment moves")
            }
    }

    private static func finding(_ finding: EnvironmentFinding, of environment: String) -> DoctorFinding {
        let name = "\(environment): \(finding.what)"
        guard !finding.works else { return .good(name, finding.detail) }
        let edit = "fieldpost environment edit \(environment)"
        let remedy =
            switch finding.what {
            case "discovery": "check that the provider responds to this machine; \(edit) --issuer or --discovery-url"
            case "keys": "check that the provider responds to this machine; \(edit) --jwks-url"
            case "client": "\(edit) --client-id … --client-secret-from VARIABLE"
            case "claims": "configure the provider to add them to the ID token, or \(edit) --address-verified-by"
            case let check where check.hasPrefix("circuit breaker"):
                "fix the cause in the reason; its keys are retried when the back end responds"
            default:
                "check that it responds to this machine; \(edit) --backend-url, --backend-user, "
                    + "--backend-password-from or --people"
            }
        return .failure(name, finding.detail, do: remedy)
    }
}
