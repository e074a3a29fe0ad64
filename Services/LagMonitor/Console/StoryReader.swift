import Essentials
import FoundationEssentials
import Model
import Operations
import Postgres

/// Finds the life of an object, for the time line.
enum StoryReader {
    /// Stories that are told of one id: one for each realm that has the object.
    static let storyCountMax = 20

    /// What is stored of an object in each realm that has it: when its last changes were written, and where it is
    /// parked.
    static func load(
        _ id: UUID, in environment: EnvironmentID, named name: String, on connection: inout Connection
    ) throws -> [Story] {
        let paths = try RealmContentReader.realms(holding: id, in: environment, on: &connection)
        let parked = try ParkedStore.load(
            ParkedStore.Selection(keys: [id.text], environment: environment.rawValue), countMax: storyCountMax,
            on: &connection)
        return try paths.prefix(storyCountMax).compactMap { path -> Story? in
            guard let realm = try? RealmPath(validating: path),
                let reader = try RealmContentReader(realm, in: environment, on: &connection),
                let object = try reader.objects(nil, id: id, countMax: 1, on: &connection).first
            else { return nil }
            let hops = try written(object, reader, on: &connection) + parked.map(hop)
            return Story(
                environment: name, subject: "\(path)/\(object.kind)/\(id.text)",
                hops: hops.sorted { ($0.at?.millisecondsSinceEpoch ?? 0) < ($1.at?.millisecondsSinceEpoch ?? 0) },
                gaps: ["changes before the last one, and the last edit, are not kept with the object"])
        }
    }

    private static func written(
        _ object: RealmContentReader.Object, _ reader: RealmContentReader, on connection: inout Connection
    ) throws -> [Story.Hop] {
        let positions = Array(Set([object.editPosition, object.position]))
        let rows = try connection.run(
            """
            SELECT position, changed_at, traceparent FROM store.change
            WHERE environment_id = \(reader.environment.rawValue) AND position = ANY (\(positions))
                AND id = \(object.id)
            ORDER BY position
            """
        ).decode(Int64.self, Timestamp.self, String?.self)
        return rows.map { position, at, traceparent in
            let isEdit = position == object.editPosition
            return Story.Hop(
                at: at, service: isEdit ? "device" : "service", event: "written",
                text: isEdit ? "edited by a device, an integration or an import" : "written by a service",
                position: position, traceparent: traceparent)
        }
    }

    private static func hop(_ row: ParkedStore.Row) -> Story.Hop {
        Story.Hop(
            at: row.parkedAt, service: row.group, event: "parked", text: "\(row.state.rawValue): \(row.reason)",
            topic: row.topic, partition: row.partition, attempt: Int(row.attempts))
    }
}
