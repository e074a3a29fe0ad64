package import Model
package import Postgres

/// The audit log: who did what, when, and from where.
package struct AuditRecord: Sendable, Equatable {
    /// What was done; the names are stable, for programs.
    package enum Action: String, Sendable, CaseIterable {
        /// An identity was bound to an e-mail address at its first login.
        case bound = "login.bound"
        /// A person may come in with another account.
        case unbound = "login.unbound"
        /// A device renewed its token with a credential that was spent: it is shut out, and whoever has the copy too.
        case deviceReused = "device.reused"
        /// The identity provider takes a device's refresh token no more.
        case deviceEnded = "device.ended"
        /// A device was shut out by an administrator.
        case deviceRevoked = "device.revoked"
        /// A device came in.
        case loggedIn = "login.succeeded"
        /// A device did not come in; the detail says why.
        case loginFailed = "login.failed"
        /// A login was refused although its token was good.
        case refused = "login.refused"
        case roleChanged = "role.changed"
        case membershipAdded = "membership.added"
        case membershipRemoved = "membership.removed"
        case teamRemoved = "team.removed"
        /// A person shared an item of theirs with somebody.
        case itemShared = "item.shared"
        case itemUnshared = "item.unshared"
        /// A person removed what somebody shared with them.
        case copyRemoved = "copy.removed"
        /// One of the two ended all that one of them shared with the other.
        case shareRemoved = "share.removed"
        /// A person's `User` object refers to another catalogue.
        case catalogueChanged = "catalogue.changed"
        case environmentChanged = "environment.changed"
        /// An environment was let go to another installation.
        case environmentLeft = "environment.left"
        /// An environment that was leaving goes on.
        case environmentTakenBack = "environment.taken-back"
        /// An environment came from another installation.
        case environmentBegun = "environment.begun"
        /// What had arrived of an environment was removed before it began.
        case environmentDiscarded = "environment.discarded"
        /// A person's refresh token was revoked at the identity provider, and removed here.
        case tokenRevoked = "token.revoked"
        /// It was removed here without a word to the provider.
        case tokenForgotten = "token.forgotten"
        case peopleInvited = "people.invited"
        /// A person whom the back end proposed was taken, with the reference that it has of them.
        case personAccepted = "person.accepted"
        case integrationAdded = "integration.added"
        case integrationRemoved = "integration.removed"
        /// Reporting trees, contexts and templates of a file were written into a realm.
        case treeImported = "tree.imported"
        /// Objects of a file were written: once when the first of them is, and once when all are.
        case objectsImported = "objects.imported"
        case schemaMigrated = "schema.migrated"
        /// What may have been lost was set apart, or the database was accepted as whole.
        case databaseRestored = "database.restored"
        case parkedRetried = "parked.retried"
        case parkedDiscarded = "parked.discarded"
        /// What was not as it follows from other data was written anew, or is decided anew.
        case objectsRepaired = "objects.repaired"
        /// A topic's objects are published again.
        case topicRepublished = "topic.republished"
        /// Stored secrets were sealed anew.
        case secretsSealed = "secrets.sealed"
        /// Old records of this log were removed.
        case auditPruned = "audit.pruned"
        /// An administrator signed in at the console.
        case consoleOpened = "console.opened"
        /// Somebody who logged in at the operators' provider is no administrator.
        case consoleRefused = "console.refused"
        case consoleClosed = "console.closed"
        /// An administrator listed realms, whose paths name people.
        case realmsListed = "realms.listed"
        /// An administrator listed people who may open a realm.
        case peopleListed = "people.listed"
        /// An administrator looked into a realm.
        case realmViewed = "realm.viewed"
        /// An administrator looked at what a parked key or an object holds.
        case payloadViewed = "payload.viewed"
    }

    /// Texts are cut at this many characters; control characters are not kept, so that no line can be forged.
    package static let textLengthMax = 400

    package var actor: String
    package var action: Action
    package var subject: String
    /// A JSON object.
    package var detail: JSONBytes
    package var address: String

    package init(
        actor: String, action: Action, subject: String, detail: JSONBytes = JSONBytes("{}"), address: String
    ) {
        self.actor = Self.plain(actor)
        self.action = action
        self.subject = Self.plain(subject)
        self.detail = detail
        self.address = Self.plain(address)
    }

    /// A text as records have it.
    package static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(textLengthMax).map { scalar in
                    scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
                        ? "?" : scalar
                }))
    }

    /// Records removed by one statement.
    package static let removedCountMax: Int64 = 5_000

    /// Removes the oldest records, up to the first page that has younger ones: ids grow with time. Those of an
    /// environment that is held for its move, or has left, are passed over.
    ///
    /// - Returns: How many were removed, where to go on, and whether these were the last.
    package static func removePage(
        olderThan seconds: Double, after last: Int64, on connection: inout Connection
    ) throws(PostgresError) -> (count: Int, last: Int64, isLast: Bool) {
        let rows = try connection.run(
            """
            WITH page AS (
                SELECT id, ctid AS place, happened_at FROM access.audit
                WHERE id > \(last) ORDER BY id LIMIT \(removedCountMax)
            ), old AS (
                SELECT id, place FROM page WHERE happened_at < now() - make_interval(secs => \(seconds))
            ), gone AS (
                DELETE FROM access.audit WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING id
            )
            SELECT (SELECT count(*) FROM gone), coalesce(max(id), 0), count(*) FROM old
            """)
        let (count, last, oldCount) = try rows[0].decode(Int64.self, Int64.self, Int64.self)
        return (Int(count), last, oldCount < removedCountMax)
    }

    /// The statement that writes records.
    ///
    /// - Parameter environment: `nil`: they concern the whole installation.
    package static func insert(_ records: [AuditRecord], in environment: EnvironmentID?) -> Statement {
        insert(records.map { ($0, -1) }, in: environment)
    }

    /// The same in a ``WriteBatch``: a record is written when its decision was.
    ///
    /// - Parameter name: Names the environment where its number is not known yet.
    package static func insert(
        _ records: [(record: AuditRecord, decision: Int32)], in environment: EnvironmentID?, named name: String? = nil
    ) -> Statement {
        """
        INSERT INTO access.audit (environment_id, actor, action, subject, detail, address)
        SELECT coalesce(\(environment?.rawValue), (SELECT id FROM realm.environment WHERE name = \(name))), a.actor,
            a.action, a.subject, a.detail, a.address
        FROM unnest(\(records.map(\.record.actor)), \(records.map(\.record.action.rawValue)),
            \(records.map(\.record.subject)), \(records.map(\.record.detail)), \(records.map(\.record.address)),
            \(records.map(\.decision))) AS a(actor, action, subject, detail, address, decision)
        WHERE a.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }
}
