import Essentials
import FoundationEssentials
import Logging
import Metrics
import Model
import ObjectStore
import Postgres
import ServiceRuntime

/// A synthetic probe of the whole path: writes a note as a device's edit, which the relay publishes and `share-fan-out`
/// copies for its recipient. The probe ends when the copy has the written number.
struct Probe: ~Copyable {
    /// Time after which a probe is lost.
    static let waitMax = Duration.seconds(30)
    private static let pollInterval = Duration.milliseconds(10)

    private let environment: String
    private let conninfo: String
    private var connection: Connection?
    private var route: ProbeRoute?
    /// The last logged reason of a lost probe.
    private var loggedReason: String?
    private let roundTrip = Metrics.Timer(label: "fieldpost.probe.round.trip")
    private let lost = Counter(label: "fieldpost.probe.lost")

    /// - Parameter environment: An environment that only probes use.
    init(through environment: String, conninfo: String) {
        (self.environment, self.conninfo) = (environment, conninfo)
        lost.increment(by: 0)
    }

    /// Sends one probe and waits for it. A probe that cannot be sent is lost too.
    ///
    /// - Returns: The error if PostgreSQL is unavailable, otherwise `nil`.
    mutating func step(_ control: WorkerControl) -> String? {
        do {
            let problem = try send(control)
            if let problem, problem != loggedReason {
                control.logger.warning("probe lost", metadata: ["reason": "\(problem)"])
            }
            loggedReason = problem
            if problem != nil { lost.increment() }
            return nil
        } catch {
            lost.increment()
            connection = nil
            return "\(error)"
        }
    }

    /// - Returns: The reason why the probe is lost, or `nil`.
    private mutating func send(_ control: WorkerControl) throws -> String? {
        let start = ContinuousClock.now
        guard let route = try prepare() else { return "the environment \(environment) does not exist" }
        guard let number = try connection?.sendProbe(route) else { return nil }
        while try connection?.receivedProbe(route) ?? 0 < number {
            if control.isStopping { return nil }
            guard ContinuousClock.now - start < Self.waitMax else { return "no copy within \(Self.waitMax.shortText)" }
            control.pause(Self.pollInterval)
        }
        roundTrip.recordNanoseconds((ContinuousClock.now - start).nanoseconds)
        return nil
    }

    /// - Returns: `nil` if the environment does not exist.
    private mutating func prepare() throws -> ProbeRoute? {
        if connection == nil {
            var opened = try Connection(conninfo, limits: .monitor, check: Lineage.check)
            try Schema.check(on: &opened)
            connection = consume opened
            route = nil
        }
        if route == nil { route = try connection?.makeProbeRoute(through: environment) }
        return route
    }
}
