import Access
import Algorithms
import BackendConnections
import Essentials
import FoundationEssentials
import Glibc
import Kafka
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// An environment of a benchmark whose objects are written as by devices, and published as by the relay.
struct BenchWorld: ~Copyable {
    /// An object, and the realm it is in.
    struct Place {
        let path: RealmPath
        let key: ObjectKey
    }

    var connection: Connection
    let environment: EnvironmentID
    let common: Int32
    let manager: Int32
    private var directory: RealmDirectory
    private var producer: Producer
    private var events: EventWriter

    /// Objects written, or read, at a time.
    private static let countMax = 5_000

    init(on place: BenchPlace) throws {
        var connection = try Connection(place.conninfo)
        let environment = try connection.run(
            "INSERT INTO realm.environment (name) VALUES ('bench') RETURNING id")[0].decode(EnvironmentID.self)
        var directory = RealmDirectory()
        let realms = try directory.ids(of: [.common, .manager], in: environment, create: true, on: &connection)
        let producer = try Producer(brokers: place.brokers)
        self.environment = environment
        self.directory = directory
        (common, manager) = (realms[.common] ?? 0, realms[.manager] ?? 0)
        events = EventWriter(environment: environment, generation: 1, epoch: 1)
        self.connection = connection
        self.producer = producer
    }

    /// The numbers of realms, which are made.
    mutating func realms(_ paths: some Collection<RealmPath>) throws -> [RealmPath: Int32] {
        try directory.ids(of: Array(paths), in: environment, create: true, on: &connection)
    }

    /// The service's group has begun its topics, so that it does not begin them again.
    mutating func begin(_ service: ServiceDescription) throws {
        for topic in service.topics {
            try connection.run(
                """
                INSERT INTO pipeline.progress (group_name, topic, partition, epoch)
                SELECT \(service.name), \(topic.name), p, 1
                FROM unnest(\((0..<topic.partitions).map(Int32.init))) p
                ON CONFLICT DO NOTHING
                """)
        }
    }

    /// Lets people in, with what the server makes for them.
    ///
    /// - Returns: The ids of their `Person` objects.
    mutating func letIn(_ emails: [String]) throws -> [(id: UUID, email: String)] {
        var people: [(id: UUID, email: String)] = []
        for part in emails.chunks(ofCount: Registration.batchCountMax) {
            try Registration.register(Array(part), in: environment, on: &connection)
            people += try People.objects(of: Array(part), in: environment, on: &connection).map { ($1, $0) }
        }
        return people
    }

    /// Teams with their members.
    mutating func addTeams(_ teams: [(id: UUID, members: [UUID])]) throws {
        let common = common
        try put(teams.map { (ObjectKey(realm: common, kind: .team, id: $0.id), #"{"name":"Team"}"#) })
        try put(
            teams.flatMap { team in
                team.members.map { person in
                    (
                        ObjectKey(realm: common, kind: .membership, id: Membership.id(of: person, in: team.id)),
                        "{\"person\":\"\(person.text)\",\"team\":\"\(team.id.text)\"}"
                    )
                }
            })
    }

    /// Writes objects as devices' edits, and leaves the tables as after some rest.
    mutating func put(_ objects: [(key: ObjectKey, fields: String)]) throws {
        try write(objects)
        try connection.runScript("CHECKPOINT")
    }

    /// Writes objects as devices' edits.
    mutating func write(_ objects: [(key: ObjectKey, fields: String)]) throws {
        for part in objects.chunks(ofCount: Self.countMax) {
            var batch = WriteBatch(environment: environment)
            for (key, fields) in part { batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true) }
            _ = try batch.commit(on: &connection)
        }
    }

    mutating func delete(_ key: ObjectKey) throws {
        var batch = WriteBatch(environment: environment)
        batch.delete(key, decision: 0, isEdit: true)
        _ = try batch.commit(on: &connection)
    }

    /// Objects as they are.
    mutating func load(_ keys: [ObjectKey]) throws -> [ObjectKey: RealmObject] {
        var objects: [ObjectKey: RealmObject] = [:]
        objects.reserveCapacity(keys.count)
        for part in keys.chunks(ofCount: Self.countMax) {
            let rows = try connection.run(RealmObject.load(part, in: environment))
            objects.merge(try RealmObject.byKey(rows)) { $1 }
        }
        return objects
    }

    /// Publishes objects as the relay would, as they are.
    mutating func publish(_ places: [Place], to topic: Topic) throws {
        let objects = try load(places.map(\.key))
        for place in places {
            guard let object = objects[place.key] else { continue }
            let published = PublishedObject(
                realm: place.path, kind: place.key.kind, id: place.key.id, position: object.position,
                editPosition: object.editPosition, time: .now())
            if let fields = object.fields {
                try unsafe fields.bytes.withUnsafeBytes {
                    try unsafe events.send(published, to: topic, json: $0, tag: 0, through: &producer)
                }
            } else {
                try unsafe events.send(published, to: topic, json: nil, tag: 0, through: &producer)
            }
        }
        guard producer.flush(waitMax: .seconds(120)) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
        _ = producer.deliveries(waitMax: .zero)
    }

    mutating func position() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0].value(0)
    }

    /// Waits until the environment's counter is there.
    ///
    /// - Returns: When it was seen, and where it was.
    @discardableResult
    mutating func wait(
        until wanted: Int64, within: Duration = .seconds(300)
    ) throws -> (at: ContinuousClock.Instant, position: Int64) {
        let deadline = ContinuousClock.now + within
        while true {
            let found = try position()
            if found >= wanted { return (.now, found) }
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "the service is at \(found) and not at \(wanted)")
            }
            poll(nil, 0, 5)
        }
    }

    /// Runs statements that were made beforehand, each list as a transaction of its own.
    ///
    /// - Returns: How long it takes.
    mutating func time(_ pipelines: [[Statement]]) throws -> Duration {
        let start = ContinuousClock.now
        for pipeline in pipelines { try connection.run(pipeline) }
        return ContinuousClock.now - start
    }
}
