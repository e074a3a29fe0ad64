import Essentials
import LagMonitoring
import Model

/// The suite at one time: services and topics, and what flows between them.
struct Overview: Encodable {
    /// A service of the catalogue.
    struct Service: Encodable {
        enum State: String, Encodable {
            case ready
            case impaired
            case away
            /// Nobody asks it, and no topic of its own tells.
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

    /// One group that reads a topic.
    struct Reader: Encodable {
        let group: String
        let isOurs: Bool
        let lag: Int64
        let seconds: Double?
        let comes: Double?
        let goes: Double?
        let closesSeconds: Double?
        let status: String?
    }

    struct Topic: Encodable {
        let name: String
        let isOurs: Bool
        let partitionCount: Int
        let comes: Double?
        let readers: [Reader]
    }

    struct Relay: Encodable {
        struct Environment: Encodable {
            let name: String
            let positionCount: Int64
            let seconds: Double?
        }

        let environmentCount: Int64
        let positionCount: Int64
        let worst: [Environment]
    }

    struct Reason: Encodable {
        let group: String
        let text: String
        let isDead: Bool
        let count: Int64
    }

    let at: String?
    let problems: [String: String]
    let areServicesAsked: Bool
    let services: [Service]
    let topics: [Topic]
    let relay: Relay
    let reasons: [Reason]

    /// Topics that are told of, Fieldpost's own first.
    static let topicCountMax = 200
    /// Environments and reasons that are told of.
    static let worstCountMax = 20
    private static let reasonCountMax = 100

    init(_ look: Look, _ instances: [ServiceWatch.Instance], areServicesAsked: Bool) {
        at = look.at?.description
        problems = look.problems
        self.areServicesAsked = areServicesAsked
        services = Services.all.map { service in
            Self.service(service, look, instances.filter { $0.service == service.name })
        }
        topics = Self.topics(look)
        relay = Relay(
            environmentCount: look.behind.environmentCount, positionCount: look.behind.positionCount,
            worst: look.behind.worst.prefix(Self.worstCountMax).map {
                Relay.Environment(name: $0.name, positionCount: $0.positionCount, seconds: $0.seconds)
            })
        reasons = look.reasons.sorted { $0.count > $1.count }.prefix(Self.reasonCountMax).map {
            Reason(group: $0.group, text: $0.text, isDead: $0.isDead, count: $0.count)
        }
    }

    private static func service(
        _ service: ServiceDescription, _ look: Look, _ instances: [ServiceWatch.Instance]
    ) -> Service {
        let parked = look.parked.filter { $0.group == service.name }
        let devices = instances.compactMap(\.devices)
        let calls = instances.compactMap(\.callsInFlight)
        let (state, reason) = health(service, look, instances)
        return Service(
            name: service.name, summary: service.summary, topics: service.topics.map(\.name),
            sources: service.sources, state: state, reason: reason, instanceCount: instances.count,
            devices: devices.isEmpty ? nil : devices.reduce(0, +),
            callsInFlight: calls.isEmpty ? nil : calls.reduce(0, +),
            deadCount: parked.map(\.deadCount).reduce(0, +), circuitCount: parked.map(\.circuitCount).reduce(0, +),
            waitingCount: parked.map { $0.waitingCount + $0.dueCount }.reduce(0, +))
    }

    /// What a service says itself comes before what its group's offsets tell of it.
    private static func health(
        _ service: ServiceDescription, _ look: Look, _ instances: [ServiceWatch.Instance]
    ) -> (Service.State, String) {
        if !instances.isEmpty {
            let bad = instances.filter { $0.state != .ready }
            guard let worst = bad.first(where: { $0.state == .away }) ?? bad.first else { return (.ready, "") }
            let isAway = bad.count == instances.count && worst.state == .away
            return (isAway ? .away : .impaired, worst.reason)
        }
        let statuses = look.sums.filter { $0.group == service.name }.compactMap(\.status)
        guard let worst = statuses.max() else { return (.unknown, "") }
        return switch worst {
        case .ok: (.ready, "")
        case .warn: (.impaired, "it does not keep up")
        case .stall: (.impaired, "it is there, and does not go on")
        case .stop: (.away, "it has stopped reading")
        case .rewind: (.impaired, "it went back")
        }
    }

    private static func topics(_ look: Look) -> [Topic] {
        let bySum = Dictionary(grouping: look.sums, by: \.topic)
        let ours = Topics.all.map(\.name)
        let others = Set(bySum.keys).subtracting(ours).sorted()
        return (ours + others).prefix(topicCountMax).map { name in
            Topic(
                name: name, isOurs: ours.contains(name), partitionCount: look.partitions[name] ?? 0,
                comes: look.comes[name].map(rounded), readers: (bySum[name] ?? []).prefix(worstCountMax).map(reader))
        }
    }

    private static func reader(_ sum: LagSum) -> Reader {
        Reader(
            group: sum.group, isOurs: Services.all.contains { $0.name == sum.group }, lag: sum.count,
            seconds: sum.secondsMax.map(rounded), comes: sum.comesPerSecond.map(rounded),
            goes: sum.goesPerSecond.map(rounded), closesSeconds: sum.closesSeconds.map(rounded),
            status: sum.status?.rawValue)
    }

    /// Three digits behind the point are more than a picture shows.
    private static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }
}
