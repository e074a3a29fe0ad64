internal import Postgres

/// A table whose rows are moved with their environment.
package struct MovedTable: Sendable {
    /// The time when imported rows are inserted into the table.
    package enum InsertTime: Sendable {
        /// During the import: the environment has no counter and no logins yet, so no service uses the rows.
        case immediate
        /// At the activation: services would use the rows immediately.
        case atActivation
    }

    /// The name with its schema; a constant of this program.
    package let name: String
    /// The primary key without the environment, which orders its rows. Empty: there is one row.
    package let key: [String]
    package let arrival: InsertTime
    /// Maximum number of rows that are read, sent and written together.
    package let pageCountMax: Int

    private init(_ name: String, _ key: [String], _ arrival: InsertTime = .atActivation, pageCountMax: Int = 1_000) {
        (self.name, self.key, self.arrival, self.pageCountMax) = (name, key, arrival, pageCountMax)
    }

    /// The kinds that the environment has ever declared. They precede the objects: triggers on these use them.
    package static let ownKinds = MovedTable("realm.own_kind", ["kind"], .immediate)
    package static let objects = MovedTable(
        "store.object", ["realm_id", "kind", "id"], .immediate, pageCountMax: 250)
    /// Blobs have up to 1 MB each, and twice that in transit.
    package static let blobs = MovedTable("blob.content", ["id"], .immediate, pageCountMax: 8)

    /// All other tables, in the order of their foreign keys, after objects and blobs.
    package static let others: [MovedTable] = [
        // A schema file has up to 1 MB.
        MovedTable("realm.kind_version", ["version"], .immediate, pageCountMax: 8),
        MovedTable("realm.realm", ["id"], .immediate),
        MovedTable("device.client", ["person_id", "client_id"], .immediate),
        MovedTable("device.mutation", ["person_id", "client_id", "sequence"], .immediate),
        MovedTable("submission.ledger", ["entry_id"], .immediate),
        MovedTable("submission.attempt", ["entry_id", "happened_at", "version"], .immediate),
        MovedTable("audience.tree", ["digest"], .immediate, pageCountMax: 1),
        MovedTable("audience.catalogue", ["id"], .immediate),
        MovedTable("audience.person", ["email"], .immediate),
        MovedTable("task.copy", ["task_id"], .immediate),
        MovedTable("task.note", ["note_id"], .immediate),
        MovedTable("defect.mirror", ["defect_id", "realm_id"], .immediate),
        MovedTable("defect.seen", ["row_id"], .immediate),
        MovedTable("defect.attempt", ["target_id"], .immediate),
        MovedTable("access.provider", []),
        MovedTable("access.domain", ["domain"]),
        MovedTable("access.address", ["email"]),
        MovedTable("access.person", ["id"]),
        MovedTable("access.integration", ["id"]),
        MovedTable("access.outline", []),
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

    package static let all = [ownKinds, objects, blobs] + others

    package static func named(_ name: String) -> MovedTable? { all.first { $0.name == name } }

    /// Tables that the write-block covers, in order: first the counter, without which hardly anything is written. The
    /// change log precedes the objects: after a rollback a retained tombstone is found by its pointer.
    package static let writeBlocked = ["realm.environment", "store.change"] + all.map(\.name)

    /// Whether its rows have the number of a kind, in the column `kind`. For own kinds the numbers differ between
    /// installations.
    package var hasKindNumber: Bool { [Self.ownKinds.name, Self.objects.name].contains(name) }

    /// The table's name as a statement.
    var sql: Statement { Statement(stringLiteral: name) }

    /// The key of a row of `t`, as a statement.
    var columns: Statement { Statement(stringLiteral: "(" + key.map { "t.\($0)" }.joined(separator: ", ") + ")") }

    /// The ORDER BY list of the key, which its index supports.
    var order: Statement {
        Statement(stringLiteral: key.isEmpty ? "1" : key.map { "t.\($0)" }.joined(separator: ", "))
    }
}
