import Foundation
package import LocalCluster
import Postgres

extension ClusterServer {
    /// Disconnects a standby from its primary: it does not receive later commits.
    package func cutOff() throws {
        var admin = try Connection(conninfo("postgres"))
        try admin.runScript("ALTER SYSTEM SET primary_conninfo = ''")
        try admin.run("SELECT pg_reload_conf()")
        let pause = DispatchSemaphore(value: 0)
        let deadline = ContinuousClock.now + patienceMax
        while try admin.run("SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)")[0].decode(Bool.self) {
            guard ContinuousClock.now < deadline else {
                throw ClusterFailure("the standby does not disconnect from its primary")
            }
            _ = pause.wait(timeout: .now() + .milliseconds(5))
        }
    }

    /// A standby becomes a primary, with what it has.
    package func promote() throws {
        var admin = try Connection(conninfo("postgres"))
        guard try admin.run("SELECT pg_promote(true, 60)")[0].decode(Bool.self) else {
            throw ClusterFailure("the standby does not become a primary")
        }
    }
}
