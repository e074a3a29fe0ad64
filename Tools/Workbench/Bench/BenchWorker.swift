import Essentials
import Foundation
import LocalCluster
import Model
import Postgres

/// A service as a process of its own.
struct BenchWorker {
    private let process: ClusterProcess

    /// How fast it was.
    struct Rate {
        /// Items a second.
        let perSecond: Double
        /// Of the service and of PostgreSQL, for each item.
        let ownMicroseconds: Double
        let backendMicroseconds: Double
    }

    /// - Parameter count: How many workers it has.
    init(_ service: ServiceDescription, count: Int = 1, on place: BenchPlace) throws {
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "\(LocalCluster.executables)/\(service.name)", arguments: [],
                environment: [
                    "PATH": "/usr/bin:/bin", "FIELDPOST_DATABASE_URL": place.conninfo,
                    "FIELDPOST_KAFKA_BROKERS": place.brokers, "FIELDPOST_WORKER_COUNT": String(count),
                    "FIELDPOST_ADMIN_PORT": String(try Ports.free()), "FIELDPOST_LOG_LEVEL": "error",
                ].merging(LocalCluster.emulatorSettings) { $1 }, logPath: nil))
    }

    /// What it read is committed: the next one goes on there.
    func end() {
        if process.terminate(within: .seconds(20)) == nil { process.kill9() }
    }

    /// Resident memory in MB.
    var memory: Double {
        guard let status = try? String(contentsOfFile: "/proc/\(process.id)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
            let kilobytes = line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap({ Double($0) })
        else { return .nan }
        return kilobytes / 1_024
    }

    /// Measures from the first change that the service writes, which does not count, to the last.
    ///
    /// - Parameters:
    ///   - start: Where the environment's counter is before.
    ///   - count: How many positions it uses.
    ///   - each: How many of them for each item.
    func rate(
        from start: Int64, count: Int, each: Int = 1, in world: inout BenchWorld
    ) throws -> Rate {
        let (begin, first) = try world.wait(until: start + 1)
        let before = (own: CPUTime.ofFamily(process.id), backends: try CPUTime.backends(on: &world.connection))
        let (end, last) = try world.wait(until: start + Int64(count))
        let after = (own: CPUTime.ofFamily(process.id), backends: try CPUTime.backends(on: &world.connection))
        let items = Double(last - first) / Double(each)
        return Rate(
            perSecond: items / (end - begin).inSeconds, ownMicroseconds: (after.own - before.own) / items * 1e6,
            backendMicroseconds: (after.backends - before.backends) / items * 1e6)
    }
}
