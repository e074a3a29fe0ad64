import Model

/// Maps a changed object to its topic by its kind and its realm's class. Used for every row that is read: kinds are
/// looked up by number, and classes of realms are bits.
struct Routing: Sendable {
    /// A kind whose changes are published.
    struct Entry: Sendable {
        let kind: Kind
        let topic: Topic
        private let classes: UInt64

        init(_ kind: Kind, _ route: Route) {
            self.kind = kind
            topic = route.topic
            classes = route.realms.reduce(0) { $0 | Self.bit($1) }
        }

        /// Creates the entry of a kind that an environment declares, which is published from all its realms.
        init(own kind: Kind, to topic: String) {
            self.kind = kind
            self.topic = Topic(own: topic)
            classes = .max
        }

        /// Whether changes in realms of this class are published.
        func includes(_ realm: RealmClass.Name) -> Bool { classes & Self.bit(realm) != 0 }

        private static func bit(_ realm: RealmClass.Name) -> UInt64 { 1 << UInt64(realm.rawValue) }
    }

    /// The kinds that are published from any realm.
    let kinds: [Kind]
    /// The names of the topics, in order.
    let topics: [String]
    /// The entries by the kind's number.
    private let entries: [Entry?]

    /// Creates the routing of the table of kinds.
    init() { self.init(Kind.allCases.compactMap { kind in kind.row.route.map { (kind, $0) } }) }

    /// - Parameter routes: At most one per kind.
    init(_ routes: [(kind: Kind, route: Route)]) {
        var entries: [Entry?] = Array(repeating: nil, count: Int(Kind.numberMax) + 1)
        for (kind, route) in routes { entries[Int(kind.number)] = Entry(kind, route) }
        self.entries = entries
        kinds = routes.map(\.kind)
        topics = Set(routes.map(\.route.topic.name)).sorted()
    }

    /// Returns the route of the kind with this number; `nil` if it is not published, or this program version does not
    /// have it.
    func entry(of number: Int16) -> Entry? {
        let index = Int(number)
        return entries.indices.contains(index) ? entries[index] : nil
    }

    /// The kinds of a topic.
    func kinds(of topic: String) -> [Kind] { entries.compactMap { $0?.topic.name == topic ? $0?.kind : nil } }
}
