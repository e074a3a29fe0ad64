import Essentials
import Glibc
package import Postgres
import Synchronization
package import Telemetry

/// Loads the names of environments for this process's log lines.
package enum EnvironmentNameLoader {
    private static let isStarted = Mutex(false)
    private static let pauseMs: Int32 = 1_000
    private static let pauseAfterFailureMs: Int32 = 10_000

    /// Starts a thread, once in a process, that loads the names at startup, and again after a line with an unknown
    /// number. A session is open only while it loads. If the database is unavailable, it retries; lines have numbers
    /// meanwhile.
    package static func start(_ conninfo: String) {
        let isFirst = isStarted.withLock { isStarted in
            defer { isStarted = true }
            return !isStarted
        }
        guard isFirst else { return }
        startThread(named: "environments") {
            while true {
                EnvironmentNames.process.waitUntilIncomplete()
                var pause = pauseMs
                do { try load(into: .process, conninfo) } catch { pause = pauseAfterFailureMs }
                poll(nil, 0, pause)
            }
        }
    }

    /// Loads all names.
    package static func load(into names: EnvironmentNames, _ conninfo: String) throws(PostgresError) {
        var connection = try Connection(conninfo)
        let rows = try connection.run("SELECT id, name FROM realm.environment").decode(Int32.self, String.self)
        names.replace(with: Dictionary(uniqueKeysWithValues: rows))
    }
}
