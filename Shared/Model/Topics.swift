/// A Kafka topic: all events of one aggregate, under one key.
public struct Topic: Equatable, Sendable {
    /// The content of a message's key, a UUID as text in lower case.
    public enum Key: Equatable, Sendable {
        /// The id of the event's object.
        case objectID
    }

    /// The topic's name in Kafka.
    public let name: String
    /// The key, which determines the order of messages.
    public let key: Key
    /// The number of partitions at creation, the maximum number of workers of one group.
    public let partitions: Int
    /// Kafka's retention time. Kafka is not the system of record: the relay republishes lost content.
    public let retention: Duration
    /// The consumer groups that read it, named after their services (`Services.swift`).
    public var consumers: [String] { Services.all.filter { $0.topics.contains(self) }.map(\.name) }

    /// Declares a topic.
    public init(
        name: String, key: Key = .objectID, partitions: Int, retention: Duration = .seconds(7 * 86_400)
    ) {
        self.name = name
        self.key = key
        self.partitions = partitions
        self.retention = retention
    }

    /// The kinds of objects whose changes are published on it, from the table of kinds.
    public var kinds: [Kind] { Kind.allCases.filter { $0.row.route?.topic == self } }
}

extension Topic {
    /// The number of partitions of a topic of own kinds at its creation.
    private static let ownPartitions = 12

    /// Creates the topic of a kind that an environment declares.
    package init(own name: String) { self.init(name: name, partitions: Self.ownPartitions) }

    /// Returns the name of a topic that an environment declares. Environments do not share topics, so that Kafka's
    /// permissions separate them.
    package static func ownName(_ name: String, of environment: String) -> String { "own.\(environment).\(name)" }

    /// Whether the name is that of a topic that environments declare.
    package static func isOwn(_ name: String) -> Bool { name.hasPrefix("own.") }

    /// The kinds, each with the patterns of the realms whose objects are published.
    package var sources: [(kind: Kind, realms: [String])] {
        kinds.map { kind in (kind, kind.row.route?.realms.map(\.pattern) ?? []) }
    }
}

/// The topic of a kind's changes, and the realms whose changes are published.
///
/// Kind and realm decide together: a copy in another realm is not published unless its own service consumes it. A kind
/// has at most one topic, so that each key has exactly one service that processes it.
package struct Route: Equatable, Sendable {
    /// The topic.
    package let topic: Topic
    /// The classes of the realms whose objects are published.
    package let realms: [RealmClass.Name]

    /// Creates a route.
    package init(to topic: Topic, from realms: [RealmClass.Name]) {
        self.topic = topic
        self.realms = realms
    }
}

/// All topics. `fieldpost topics apply` creates them, `docs/integrators/topics.md` is generated from them, and a test
/// compares them with `deploy/asyncapi.yaml`.
public enum Topics {
    /// Users' realms, for the realm initializer.
    public static let realm = Topic(name: "realm.events", partitions: 6)
    /// Time entries and the back ends' records of them, for the entry submitter.
    public static let entry = Topic(name: "entry.events", partitions: 24)
    /// Requests to poll back ends, for the poller.
    public static let poll = Topic(name: "poll.events", partitions: 12)
    /// Tasks and their notes, both masters and copies, for the task fan-out.
    public static let task = Topic(name: "task.events", partitions: 24)
    /// People, teams and memberships, for the fan-out services.
    public static let team = Topic(name: "team.events", partitions: 6)
    /// People's last locations, for the location fan-out.
    public static let location = Topic(name: "location.events", partitions: 12)
    /// Shared items, for the share fan-out.
    public static let share = Topic(name: "share.events", partitions: 12)
    /// Requests to poll defect trackers, for the notifier. Separate from ``poll`` to avoid unnecessary wake-ups of its
    /// consumers.
    public static let defectPoll = Topic(name: "defect-poll.events", partitions: 6)
    /// Commands for defects and people's logins, for the defect submitter.
    public static let defect = Topic(name: "defect.events", partitions: 12)
    /// Notices, for the notice deliverer.
    public static let notice = Topic(name: "notice.events", partitions: 12)

    /// All topics.
    public static let all = [realm, entry, poll, task, team, location, share, defectPoll, defect, notice]

    /// Whether the topic is Fieldpost's: of the catalogue, or of kinds that environments declare.
    package static func contains(_ name: String) -> Bool { Topic.isOwn(name) || all.contains { $0.name == name } }

    /// Returns the topic on which changes of `kind` are published, from the realms that the kind's row names; `nil` if
    /// no service consumes them.
    public static func topic(of kind: Kind) -> Topic? { kind.row.route?.topic }
}
