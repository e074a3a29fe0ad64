import ArgumentParser
import CommandLineSupport
import Essentials
import Model
import Postgres

/// The topic of a kind that an environment declares.
struct OwnTopic {
    let topic: Topic
    /// The kind's name.
    let kind: String

    /// Loads the topics of all environments; none without a database. If the database is unavailable, there are none
    /// either, with a warning.
    static func all(_ database: DatabaseOptions) throws -> [OwnTopic] {
        guard database.isGiven else { return [] }
        do {
            var connection = try database.connect()
            return try all(on: &connection)
        } catch let error as PostgresError {
            printError("the topics of own kinds are not included: \(error)\n")
            return []
        }
    }

    /// Loads the topics of all environments; none before the schema file of own kinds.
    static func all(on connection: inout Connection) throws -> [OwnTopic] {
        let rows = try connection.runIfTableExists(
            """
            SELECT o.topic, k.name FROM realm.own_kind o JOIN realm.kind k ON k.number = o.kind
            WHERE o.topic IS NOT NULL ORDER BY o.topic
            """)
        return try rows?.decode(String.self, String.self).map { OwnTopic(topic: Topic(own: $0), kind: $1) } ?? []
    }

    /// Whether the changes of a kind of an environment are published on it.
    func isOf(_ kind: Kind, in environment: String) -> Bool {
        self.kind == kind.rawValue && topic.name.hasPrefix(Topic.ownName("", of: environment))
    }
}

extension Topic {
    /// Returns the topic with this name: of the catalogue, or of own kinds. The latter is not checked to exist.
    ///
    /// - Throws: `ValidationError` with the available names.
    static func named(_ name: String) throws -> Topic {
        if let topic = Topics.all.first(where: { $0.name == name }) { return topic }
        guard isOwn(name) else {
            let names = Topics.all.map(\.name).joined(separator: ", ")
            throw ValidationError("no topic \(name); available: \(names), and own.{environment}.{topic}")
        }
        return Topic(own: name)
    }
}
