import Postgres
import TenantMigration
import Tenants

/// Whether the identity provider and the back end of each environment work: what `environment check` finds.
struct EnvironmentsCheck: DoctorCheck {
    let options: DatabaseOptions
    /// `nil`: all, up to ``countMax``.
    let only: String?

    /// Environments whose outside is called by one command.
    static let countMax = 100

    func findings() async -> [DoctorFinding] {
        let (checks, unread, left): ([EnvironmentCheck], [DoctorFinding], Int)
        do {
            (checks, unread, left) = try load()
        } catch let error as PostgresError where error.isConnectionLost {
            // The check of PostgreSQL says so.
            return []
        } catch {
            return [.failure("environments", "cannot be read: \(error)", do: "see the finding on PostgreSQL's rights")]
        }
        if checks.isEmpty, unread.isEmpty, let only {
            return [.failure("environment \(only)", "is not there", do: "see fieldpost environment list")]
        }
        var findings = unread
        for check in checks {
            findings += await check.findings().map { Self.finding($0, of: check.stored.name) }
        }
        if left > 0 {
            findings.append(
                .warning(
                    "environments", "\(left) more were not looked at", do: "name one: fieldpost doctor --environment"))
        }
        return findings
    }

    /// - Returns: What is to be called, what is wrong without a call, and how many environments are left out.
    private func load() throws -> (checks: [EnvironmentCheck], unread: [DoctorFinding], left: Int) {
        var connection = try options.connect(check: nil)
        let names = try EnvironmentStore.names(on: &connection).filter { only == nil || only == $0 }
        var (checks, unread): ([EnvironmentCheck], [DoctorFinding]) = ([], [])
        do {
            unread += try moves(on: &connection)
        } catch let error as PostgresError where error.isConnectionLost {
            throw error
        } catch {
            unread.append(.failure("moves", "cannot be read: \(error)", do: "see the finding on PostgreSQL's rights"))
        }
        for name in names.prefix(Self.countMax) {
            do {
                if let check = try EnvironmentCheck.load(name, on: &connection) { checks.append(check) }
            } catch let error as PostgresError where error.isConnectionLost {
                throw error
            } catch {
                unread.append(
                    .failure(
                        "environment \(name)", "cannot be read: \(error)",
                        do: "see fieldpost environment show \(name), and the finding on PostgreSQL's rights"))
            }
        }
        return (checks, unread, max(0, names.count - Self.countMax))
    }

    /// Environments that nobody can write.
    private func moves(on connection: inout Connection) throws -> [DoctorFinding] {
        try MoveListing.all(on: &connection).filter { $0.state == .held && (only == nil || only == $0.environment) }
            .map { move in
                .warning(
                    "environment \(move.environment)",
                    "nobody can write it since \(move.since): it is held for its move",
                    do: "see fieldpost environment moves")
            }
    }

    private static func finding(_ finding: EnvironmentFinding, of environment: String) -> DoctorFinding {
        let name = "\(environment): \(finding.what)"
        guard !finding.works else { return .good(name, finding.detail) }
        let edit = "fieldpost environment edit \(environment)"
        let remedy =
            switch finding.what {
            case "discovery": "see that the provider answers this machine; \(edit) --issuer or --discovery-url"
            case "keys": "see that the provider answers this machine; \(edit) --jwks-url"
            case "client": "\(edit) --client-id … --client-secret-from VARIABLE"
            case "claims": "have the provider put them into the ID token, or \(edit) --address-vouched-by"
            default:
                "see that it answers this machine; \(edit) --backend-url, --backend-user, --backend-password-from or "
                    + "--people"
            }
        return .failure(name, finding.detail, do: remedy)
    }
}
