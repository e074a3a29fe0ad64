import Essentials

/// Findings on a database's state.
enum DatabaseRules {
    /// PostgreSQL 15.
    private static let versionNumberMin: Int32 = 150_000
    /// Beyond this difference timestamps are misleading, and tokens with a tolerance of 60 s may be rejected.
    private static let clockWarning = Duration.seconds(2)
    private static let clockFailure = Duration.seconds(30)

    /// - Parameter connectionsNeeded: The number of connections that one process of each service opens; `nil` if
    ///   unknown.
    static func findings(_ facts: DatabaseFacts, connectionsNeeded: Int?) -> [DoctorFinding] {
        [
            version(facts), encoding(facts), schema(facts), lineage(facts), privileges(facts), access(facts),
            durability(facts), archive(facts), connections(facts, connectionsNeeded), clock(facts.clockAhead),
            deadKeys(facts.deadKeys),
        ].compactMap(\.self)
    }

    private static func deadKeys(_ count: Int64) -> DoctorFinding? {
        guard count > 0 else { return nil }
        let most = count == DatabaseFacts.deadKeysMax ? " or more" : ""
        return .warning(
            "dead-lettered keys", "\(count)\(most) \(count == 1 ? "needs" : "need") manual action",
            do: "list them with fieldpost deferred list --dead, and see the reason with fieldpost deferred show KEY")
    }

    private static func version(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: version"
        guard facts.versionNumber < versionNumberMin else { return .good(name, facts.version) }
        return .failure(name, "\(facts.version) is older than 15", do: "upgrade the server to PostgreSQL 15 or later")
    }

    private static func encoding(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: encoding"
        guard facts.encoding != "UTF8" else { return .good(name, "UTF8") }
        return .failure(
            name, "\(facts.encoding) cannot store all text of devices",
            do: "recreate the database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and restore into it")
    }

    private static func schema(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: schema"
        switch facts.schema {
        case facts.schemas.upperBound: return .good(name, "\(facts.schema)")
        case 0 where facts.unreadable.contains("realm.migration"):
            return .failure(name, "\(facts.user) may not read it", do: "grant the privileges listed below")
        case ..<facts.schemas.lowerBound:
            return .failure(
                name, facts.schema == 0 ? "no schema" : "\(facts.schema) is older than \(facts.schemas.lowerBound)",
                do: "run fieldpost migrate")
        case ..<facts.schemas.upperBound:
            return .warning(
                name, "\(facts.schema); this program supports \(facts.schemas.upperBound)",
                do: "run fieldpost migrate, and with --finish once all services are upgraded")
        default:
            return .failure(
                name, "\(facts.schema) is newer than \(facts.schemas.upperBound), which this program supports",
                do: "use the programs of the newer release")
        }
    }

    private static func lineage(_ facts: DatabaseFacts) -> DoctorFinding? {
        let name = "PostgreSQL: timeline"
        guard let isUnchanged = facts.isUnchanged else { return nil }
        if isUnchanged { return .good(name, "no restore or failover since it was accepted") }
        return .failure(
            name, "the database was restored or failed over", do: "stop the services and run fieldpost restore")
    }

    private static func privileges(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: privileges"
        func list(_ tables: [String]) -> String {
            tables.prefix(5).joined(separator: ", ") + (tables.count > 5 ? " and \(tables.count - 5) more" : "")
        }
        if !facts.unreadable.isEmpty {
            return .warning(
                name, "\(facts.user) may not read \(list(facts.unreadable))",
                do:
                    "GRANT USAGE ON SCHEMA, and SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA to it, unless "
                    + "its service does not need them")
        }
        if !facts.unwritable.isEmpty {
            return .warning(
                name, "\(facts.user) may not write \(list(facts.unwritable))",
                do: "GRANT INSERT, UPDATE, DELETE ON them TO \(facts.user), unless it is a read-only user")
        }
        return .good(name, "\(facts.user) may read and write all tables")
    }

    private static func access(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: writing"
        guard facts.isReadOnly else { return .good(name, "allowed") }
        return .failure(
            name, "sessions are read-only: the server is a standby, or default_transaction_read_only is on",
            do: "connect to the primary (target_session_attrs=read-write), or set default_transaction_read_only = off")
    }

    private static func durability(_ facts: DatabaseFacts) -> DoctorFinding {
        let name = "PostgreSQL: durability"
        if !facts.isSynchronous {
            return .failure(
                name, "synchronous_commit is off: a crash loses acknowledged mutations",
                do: "set synchronous_commit = on for the server, the database and the role")
        }
        guard facts.isDurable else {
            return .failure(
                name, "fsync or full_page_writes is off: a machine crash can corrupt the database",
                do: "set fsync = on and full_page_writes = on")
        }
        return .good(name, "synchronous_commit, fsync and full_page_writes are on")
    }

    /// Time that files wait above which there is a failure, as in the alert.
    private static let archiveWaitMax = Duration.seconds(900)

    private static func archive(_ facts: DatabaseFacts) -> DoctorFinding? {
        let name = "PostgreSQL: WAL archive"
        guard let archive = facts.archive else {
            // A standby archives nothing.
            if facts.isReadOnly { return nil }
            return .warning(
                name, "archive_mode is off: a restored base backup lacks all later changes",
                do: "set archive_mode = on and archive_command, unless pg_receivewal or your provider stores the WAL")
        }
        let waiting = "files wait; the last was archived \(archive.wait.shortText) ago"
        let seen = archive.wait == .zero ? "no file waits" : waiting
        if archive.isFailing || archive.wait > archiveWaitMax {
            return .failure(
                name, archive.isFailing ? "archiving fails; \(seen)" : seen,
                do: "see the reason in PostgreSQL's log, and check archive_command")
        }
        guard archive.hasTimeout else {
            return .warning(
                name, "archive_timeout is 0: changes are archived when their file is full",
                do: "set archive_timeout = 60s: a restore lacks what was not archived")
        }
        return .good(name, seen)
    }

    private static func connections(_ facts: DatabaseFacts, _ needed: Int?) -> DoctorFinding {
        let name = "PostgreSQL: max_connections"
        let available = Int(facts.connectionsMax - facts.connectionsReserved)
        let seen = "\(facts.connectionsUsed) of \(available) are in use"
        if let needed, needed > available {
            return .failure(
                name, "\(available), but one process of each service opens up to \(needed)",
                do: "raise max_connections to \(needed * 2) or more, or lower worker.count and the pools' sizes")
        }
        if Int(facts.connectionsUsed) * 5 > available * 4 {
            return .warning(
                name, seen, do: "raise max_connections, or find the sessions that use them (pg_stat_activity)")
        }
        return .good(name, seen + (needed.map { "; one process of each service opens up to \($0)" } ?? ""))
    }

    private static func clock(_ ahead: Duration) -> DoctorFinding {
        TimeDifferenceRules.finding("PostgreSQL: time", ahead, warning: clockWarning, failure: clockFailure)
    }
}
