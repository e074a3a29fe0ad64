internal import Postgres

/// A table whose rows go with their environment.
package struct MovedTable: Sendable {
    /// When its rows arrive in the table.
    package enum Arrival: Sendable {
        /// As they come: nobody works with them before the environment has its counter and its logins.
        case asTheyCome
        /// When the environment begins: services would work with them at once.
        case whenItBegins
    }

    /// With its schema; a constant of this program.
    package let name: String
    /// What orders an environment's rows: its primary key without the environment. Empty: there is one row.
    package let key: [String]
    package let arrival: Arrival
    /// So many rows are read, sent and written together.
    package let pageCountMax: Int

    private init(_ name: String, _ key: [String], _ arrival: Arrival = .whenItBegins, pageCountMax: Int = 1_000) {
        (self.name, self.key, self.arrival, self.pageCountMax) = (name, key, arrival, pageCountMax)
    }

    package static let objects = MovedTable(
        "store.object", ["realm_id", "kind", "id"], .asTheyCome, pageCountMax: 250)
    /// Their bytes are up to 1 MB each, and twice that on the way.
    package static let blobs = MovedTable("blob.content", ["id"], .asTheyCome, pageCountMax: 8)

    /// All others, in the order in which they refer to each other. Objects and blobs come before them.
    package static let others: [MovedTable] = [
        MovedTable("realm.realm", ["id"], .asTheyCome),
        MovedTable("device.client", ["person_id", "client_id"], .asTheyCome),
        MovedTable("device.mutation", ["person_id", "client_id", "sequence"], .asTheyCome),
        MovedTable("submission.ledger", ["entry_id"], .asTheyCome),
        MovedTable("submission.attempt", ["entry_id", "happened_at", "version"], .asTheyCome),
        MovedTable("audience.tree", ["digest"], .asTheyCome, pageCountMax: 1),
        MovedTable("audience.catalogue", ["id"], .asTheyCome),
        MovedTable("audience.person", ["email"], .asTheyCome),
        MovedTable("task.copy", ["task_id"], .asTheyCome),
        MovedTable("defect.mirror", ["defect_id", "realm_id"], .asTheyCome),
        MovedTable("defect.seen", ["row_id"], .asTheyCome),
        MovedTable("defect.attempt", ["target_id"], .asTheyCome),
        MovedTable("access.provider", []),
        MovedTable("access.domain", ["domain"]),
        MovedTable("access.address", ["email"]),
        MovedTable("access.person", ["id"]),
        MovedTable("access.integration", ["id"]),
        MovedTable("access.audit", ["id"]),
        MovedTable("onboarding.refresh_token", ["id"]),
        MovedTable("onboarding.token_claims", []),
        MovedTable("backend.connection", []),
        MovedTable("backend.person", ["email"]),
        MovedTable("backend.defect_tracker", []),
        MovedTable("backend.defect_login", ["login"]),
        MovedTable("backend.defect_account", ["realm_id"]),
        MovedTable("backend.delivery", []),
        MovedTable("poll.run", []),
        MovedTable("poll.finished", ["poll_id"]),
        MovedTable("poll.watermark", []),
        MovedTable("defect.run", ["scope"]),
        MovedTable("defect.watermark", []),
        MovedTable("defect.own_run", ["realm_id", "scope"]),
        MovedTable("defect.own_watermark", ["realm_id"]),
        MovedTable("delivery.shipment", ["realm_id", "notice_id", "target_id"]),
        MovedTable("pipeline.parked", ["group_name", "key"]),
    ]

    package static let all = [objects, blobs] + others

    package static func named(_ name: String) -> MovedTable? { all.first { $0.name == name } }

    /// Tables that name environments and stay, with the reason.
    package static let staying: [String: String] = [
        "store.change": "devices begin anew with the generation, and the relay publishes every routed object",
        "blob.reference": "made from the objects by their triggers",
        "defect.command": "made from the objects by their triggers",
        "realm.relay": "how far another Kafka has it",
        "realm.republish": "what another Kafka lacks; all of it is published again",
        "realm.move": "the move itself",
        "realm.move_part": "the move itself",
        "onboarding.session": "a device that is just coming in begins again, at the new place",
    ]

    /// Tables of which nothing can be written while the environment is held, in the order in which that is so: the
    /// counter first, without which hardly anything is written. The change log before the objects: a tombstone that
    /// stays is found by its pointer when the environment is taken back.
    package static let held = ["realm.environment", "store.change"] + all.map(\.name)

    /// The table as a part of a statement.
    var sql: Statement { Statement(stringLiteral: name) }

    /// The key of a row, which a statement calls `t`.
    var columns: Statement { Statement(stringLiteral: "(" + key.map { "t.\($0)" }.joined(separator: ", ") + ")") }

    /// As a key of several columns orders it, by its index.
    var order: Statement {
        Statement(stringLiteral: key.isEmpty ? "1" : key.map { "t.\($0)" }.joined(separator: ", "))
    }
}
