import Essentials
import FoundationEssentials
import Logging
import Metrics
import Model
import ObjectStore
import Postgres
import ServiceRuntime

/// Sends a note through the suite again and again: written as a device's edit, published by the relay, read by
/// `share-fan-out`, and copied for the one it is shared with. It is back when the copy says what was written.
struct Probe: ~Copyable {
    /// What has not come by then is lost.
    static let waitMax = Duration.seconds(30)
    private static let lookedEvery = Duration.milliseconds(10)
    private static var limits: Limits {
        var limits = Limits(lockMax: .seconds(2))
        (limits.statementMax, limits.tcpUserMax) = (.seconds(5), .seconds(5))
        return limits
    }

    private let environment: String
    private let conninfo: String
    private var connection: Connection?
    private var way: ProbeWay?
    /// Why the last one was lost, which is said once.
    private var told: String?
    private let roundTrip = Metrics.Timer(label: "fieldpost.probe.round.trip")
    private let lost = Counter(label: "fieldpost.probe.lost")

    /// - Parameter environment: Made for this alone.
    init(through environment: String, conninfo: String) {
        (self.environment, self.conninfo) = (environment, conninfo)
        lost.increment(by: 0)
    }

    /// Sends one note, and waits for it. One that cannot be sent is lost too.
    ///
    /// - Returns: That PostgreSQL is away; `nil` when it is not.
    mutating func step(_ control: WorkerControl) -> String? {
        do {
            let problem = try send(control)
            if let problem, problem != told {
                control.logger.warning("a note of the probe is lost", metadata: ["reason": "\(problem)"])
            }
            told = problem
            if problem != nil { lost.increment() }
            return nil
        } catch {
            lost.increment()
            connection = nil
            return "\(error)"
        }
    }

    /// - Returns: Why the note is lost.
    private mutating func send(_ control: WorkerControl) throws -> String? {
        let start = ContinuousClock.now
        guard let way = try prepare() else { return "there is no environment \(environment)" }
        guard let number = try connection?.sendProbe(way) else { return nil }
        while try connection?.arrivedProbe(way) ?? 0 < number {
            if control.isStopping { return nil }
            guard ContinuousClock.now - start < Self.waitMax else { return "it did not come" }
            control.pause(Self.lookedEvery)
        }
        roundTrip.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
        return nil
    }

    /// - Returns: `nil` when there is no such environment.
    private mutating func prepare() throws -> ProbeWay? {
        if connection == nil {
            var opened = try Connection(conninfo, limits: Self.limits, check: Lineage.check)
            try Schema.check(on: &opened)
            connection = consume opened
            way = nil
        }
        if way == nil { way = try connection?.makeProbeWay(through: environment) }
        return way
    }
}
