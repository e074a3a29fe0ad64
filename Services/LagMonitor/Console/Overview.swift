import Essentials
import LagMonitoring
import Model

/// The state of the installation at one time: services, topics and the flows between them.
struct Overview: Encodable {
    /// A service of Fieldpost's catalogue.
    struct Service: Encodable {
        enum State: String, Encodable {
            case ready
            /// It reports that it is not ready.
            case impaired
            /// It does not respond.
            case unavailable
            /// It is not polled and consumes no topic.
            case unknown
        }

        let name: String
        let summary: String
        let topics: [String]
        let sources: [String]
        let state: State
        let reason: String
        let instanceCount: Int
        let devices: Double?
        let callsInFlight: Double?
        let deadCount: Int64
        let circuitCount: Int64
        let waitingCount: Int64
    }

    /// A consumer group of a topic.
    struct Reader: Encodable {
        let group: String
        let isOurs: Bool
        let lag: Int64
        let seconds: Double?
        let inRate: Double?
        let outRate: Double?
        let drainSeconds: Double?
        let status: String?
    }

    struct Topic: Encodable {
        let name: String
        let isOurs: Bool
        let partitionCount: Int
        let inRate: Double?
        let readers: [Reader]
    }

    let at: String?
    let problems: [String: String]
    let areServicesPolled: Bool
    let services: [Service]
    let topics: [Topic]
    let relay: MonitorStore.Behind
    let reasons: [MonitorStore.Reason]

    /// The limit of topics, Fieldpost's own first.
    static let topicCountMax = 200
    /// The limit of environments, and of groups per topic.
    static let worstCountMax = 20
    private static let reasonCountMax = 100

    init(_ snapshot: MonitorSnapshot, _ instances: [ServiceWatch.Instance], areServicesPolled: Bool) {
        at = snapshot.at?.description
        problems = snapshot.problems
        self.areServicesPolled = areServicesPolled
        services = Services.all.map { service in
            Self.service(service, snapshot, instances.filter { $0.service == service.name })
        }
        topics = Self.topics(snapshot)
        var behind = snapshot.behind
        behind.worst = Array(behind.worst.prefix(Self.worstCountMax))
        relay = behind
        reasons = Array(snapshot.reasons.sorted { $0.count > $1.count }.prefix(Self.reasonCountMax))
    }

    private static func service(
        _ service: ServiceDescription, _ snapshot: MonitorSnapshot, _ instances: [ServiceWatch.Instance]
    ) -> Service {
        let parked = snapshot.parked.filter { $0.group == service.name }
        let devices = instances.compactMap(\.devices)
        let calls = instances.compactMap(\.callsInFlight)
        let (state, reason) = health(service, snapshot, instances)
        return Service(
            name: service.name, summary: service.summary, topics: service.topics.map(\.name),
            sources: service.sources, state: state, reason: reason, instanceCount: instances.count,
            devices: devices.isEmpty ? nil : devices.flatMap(\.values).reduce(0, +),
            callsInFlight: calls.isEmpty ? nil : calls.reduce(0, +),
            deadCount: parked.map(\.deadCount).reduce(0, +), circuitCount: parked.map(\.circuitCount).reduce(0, +),
            waitingCount: parked.map { $0.waitingCount + $0.dueCount }.reduce(0, +))
    }

    /// Returns a service's health: from polling its instances, otherwise from its group's status.
    private static func health(
        _ service: ServiceDescription, _ snapshot: MonitorSnapshot, _ instances: [ServiceWatch.Instance]
    ) -> (Service.State, String) {
        if !instances.isEmpty {
            let bad = instances.filter { $0.state != .ready }
            guard let worst = bad.first(where: { $0.state == .unavailable }) ?? bad.first else { return (.ready, "") }
            let isUnavailable = bad.count == instances.count && worst.state == .unavailable
            return (isUnavailable ? .unavailable : .impaired, worst.reason)
        }
        let statuses = snapshot.sums.filter { $0.group == service.name }.compactMap(\.status)
        guard let worst = statuses.max() else { return (.unknown, "") }
        return switch worst {
        case .ok: (.ready, "")
        case .warn: (.impaired, "its lag is not decreasing")
        case .stall: (.impaired, "its consumer group is stalled")
        case .stop: (.unavailable, "its consumer group has no members")
        case .rewind: (.impaired, "its committed offset moved backwards")
        }
    }

    private static func topics(_ snapshot: MonitorSnapshot) -> [Topic] {
        let bySum = Dictionary(grouping: snapshot.sums, by: \.topic)
        let ours = Topics.all.map(\.name)
        let others = Set(bySum.keys).subtracting(ours).sorted()
        return (ours + others).prefix(topicCountMax).map { name in
            Topic(
                name: name, isOurs: Topics.contains(name), partitionCount: snapshot.partitions[name] ?? 0,
                inRate: snapshot.inRates[name].map(rounded),
                readers: (bySum[name] ?? []).prefix(worstCountMax).map(reader))
        }
    }

    static func reader(_ sum: LagSum) -> Reader {
        Reader(
            group: sum.group, isOurs: Services.all.contains { $0.name == sum.group }, lag: sum.count,
            seconds: sum.secondsMax.map(rounded), inRate: sum.inPerSecond.map(rounded),
            outRate: sum.outPerSecond.map(rounded), drainSeconds: sum.drainSeconds.map(rounded),
            status: sum.status?.rawValue)
    }

    /// Limits the precision to three decimals.
    private static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }
}
