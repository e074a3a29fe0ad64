/// A Kafka topic: every event of one aggregate, under one key.
public struct Topic: Equatable, Sendable {
    /// What a message's key is made of. Its text is the UUID in lower case.
    public enum Key: Equatable, Sendable {
        /// The id of the object the event is about.
        case objectID
    }

    /// The topic's name in Kafka.
    public let name: String
    /// What orders its messages.
    public let key: Key
    /// How many partitions it is created with: the most workers of one group that can share it.
    public let partitions: Int
    /// How long Kafka keeps a message. Not the truth: the relay publishes lost content again.
    public let retention: Duration
    /// The consumer groups that read it, named as their services (`Services.swift`).
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

    /// The kinds of objects whose changes are published on it, as their rows of the table of kinds say.
    public var kinds: [Kind] { Kind.allCases.filter { $0.row.route?.topic == self } }
}

extension Topic {
    /// Its kinds, each with the realms whose objects are published, as people write those.
    package var sources: [(kind: Kind, realms: [String])] {
        kinds.map { kind in (kind, kind.row.route?.realms.map(\.pattern) ?? []) }
    }
}

/// Where changes of a kind's objects are published, and of which realms.
///
/// Kind and realm decide together: a copy in another realm is no event, unless its own service has to hear of it. One
/// kind is on one topic at most, so that a key has one service that decides.
package struct Route: Equatable, Sendable {
    /// The topic.
    package let topic: Topic
    /// The classes of the realms whose objects are published.
    package let realms: [RealmClass.Name]

    /// A route.
    package init(to topic: Topic, from realms: [RealmClass.Name]) {
        self.topic = topic
        self.realms = realms
    }
}

/// Every topic there is. `fieldpost topics apply` creates them; `docs/integrators/topics.md` is made from them, and
/// `deploy/asyncapi.yaml` is checked against them.
public enum Topics {
    /// Users' realms, for those who fill them.
    public static let realm = Topic(name: "realm.events", partitions: 6)
    /// Time entries and what back ends were seen to hold of them, for those who submit them.
    public static let entry = Topic(name: "entry.events", partitions: 24)
    /// What is to be read from back ends, for those who read it.
    public static let poll = Topic(name: "poll.events", partitions: 12)
    /// Tasks, masters and copies, for those who keep them the same.
    public static let task = Topic(name: "task.events", partitions: 24)
    /// People, teams and who is in them, for those who decide who sees what by that.
    public static let team = Topic(name: "team.events", partitions: 6)
    /// Where people were last, for those who show it to others.
    public static let location = Topic(name: "location.events", partitions: 12)
    /// What people share, and with whom, for those who keep the copies.
    public static let share = Topic(name: "share.events", partitions: 12)
    /// What is to be read from trackers of defects, for those who read it. Not on ``poll``, which it would wake.
    public static let defectPoll = Topic(name: "defect-poll.events", partitions: 6)
    /// What people want to be done with defects, and their own logins for it, for those who carry it to trackers.
    public static let defect = Topic(name: "defect.events", partitions: 12)
    /// What people are to know of, for those who carry it outside.
    public static let notice = Topic(name: "notice.events", partitions: 12)

    /// All topics.
    public static let all = [realm, entry, poll, task, team, location, share, defectPoll, defect, notice]

    /// The topic on which changes of objects of `kind` are published, of the realms that the kind's row names; `nil`
    /// when nobody reacts to them.
    public static func topic(of kind: Kind) -> Topic? { kind.row.route?.topic }
}
