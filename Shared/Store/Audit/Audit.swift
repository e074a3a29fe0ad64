package import Model
package import Postgres

/// An entry of the audit log: actor, action, subject, time and network address.
package struct AuditRecord: Sendable, Equatable {
    /// The action that was performed. Names are stable, for programs.
    package enum Action: String, Sendable, CaseIterable {
        /// An account of the identity provider was bound to an e-mail address at its first login.
        case bound = "login.bound"
        /// A person's account was unbound; the next login binds one.
        case unbound = "login.unbound"
        /// A device used a spent credential to renew its token; its access was revoked, including that of copies.
        case deviceReused = "device.reused"
        /// The identity provider rejected a device's refresh token.
        case deviceEnded = "device.ended"
        /// An administrator revoked a device's access.
        case deviceRevoked = "device.revoked"
        /// A device logged in.
        case loggedIn = "login.succeeded"
        /// A device logged out: its access was revoked.
        case loggedOut = "login.ended"
        /// A device's login failed; the detail has the reason.
        case loginFailed = "login.failed"
        /// A login with a valid token was refused.
        case refused = "login.refused"
        case roleChanged = "role.changed"
        case membershipAdded = "membership.added"
        case membershipRemoved = "membership.removed"
        case teamRemoved = "team.removed"
        /// A person shared one of their items.
        case itemShared = "item.shared"
        case itemUnshared = "item.unshared"
        /// A recipient removed their copy of a shared item.
        case copyRemoved = "copy.removed"
        /// The owner or the recipient ended a share with all its items.
        case shareRemoved = "share.removed"
        /// The catalogue that a person's `User` object refers to changed.
        case catalogueChanged = "catalogue.changed"
        case environmentChanged = "environment.changed"
        /// An environment was cut over to another installation.
        case environmentCutOver = "environment.left"
        /// The move of an environment was rolled back.
        case environmentRolledBack = "environment.taken-back"
        /// An environment from another installation was activated.
        case environmentActivated = "environment.begun"
        /// The copied data of an environment was discarded before its activation.
        case environmentDiscarded = "environment.discarded"
        /// A person's refresh token was revoked at the identity provider, and removed here.
        case tokenRevoked = "token.revoked"
        /// A refresh token was removed here without revoking it at the provider.
        case tokenDiscarded = "token.forgotten"
        /// An environment was removed with all its data.
        case environmentErased = "environment.erased"
        /// A person was erased; the subject is the pseudonym that replaces them in the audit log.
        case personErased = "person.erased"
        case peopleInvited = "people.invited"
        /// A person proposed by the back end was accepted, with the back end's reference.
        case personAccepted = "person.accepted"
        case integrationAdded = "integration.added"
        case integrationRemoved = "integration.removed"
        /// Reporting trees, contexts and templates were imported into a realm.
        case treeImported = "tree.imported"
        /// Objects were imported from a file: recorded when the first one and when all are written.
        case objectsImported = "objects.imported"
        case schemaMigrated = "schema.migrated"
        /// A schema file was applied: a version of the kinds that an environment declares.
        case kindsApplied = "kinds.applied"
        /// Possibly lost changes were set apart, or a restored database was accepted as complete.
        case databaseRestored = "database.restored"
        case parkedRetried = "parked.retried"
        case parkedDiscarded = "parked.discarded"
        /// Inconsistent derived objects were rewritten or scheduled for reconciliation.
        case objectsRepaired = "objects.repaired"
        /// The objects of a topic are being republished.
        case topicRepublished = "topic.republished"
        /// Stored secrets were re-encrypted.
        case secretsSealed = "secrets.sealed"
        /// Old records of the audit log were deleted.
        case auditPruned = "audit.pruned"
        /// An administrator signed in at the console.
        case consoleOpened = "console.opened"
        /// A login at the operators' provider was refused: the account is not an administrator.
        case consoleRefused = "console.refused"
        case consoleClosed = "console.closed"
        /// An administrator listed realms, whose paths contain people's addresses.
        case realmsListed = "realms.listed"
        /// An administrator listed people who may open a realm.
        case peopleListed = "people.listed"
        /// An administrator viewed a realm's objects.
        case realmViewed = "realm.viewed"
        /// An administrator viewed the payload of a deferred key or an object.
        case payloadViewed = "payload.viewed"
    }

    /// The limit of a text's Unicode scalars. Control and format characters are replaced, to prevent forged lines.
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

    /// Returns a text as records store it: truncated, and with control and format characters replaced by `?`.
    package static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(textLengthMax).map { scalar in
                    scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
                        ? "?" : scalar
                }))
    }

    /// The limit of records that one statement deletes.
    package static let removedCountMax: Int64 = 5_000

    /// Deletes the next page of expired records: ids increase with time. Skips records of environments that are
    /// write-blocked for a move, or have moved.
    ///
    /// - Returns: The number of deleted records, the id to resume from, and whether this was the last page.
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

    /// Returns the statement that inserts records.
    ///
    /// - Parameter environment: `nil` if they concern the whole installation.
    package static func insert(_ records: [AuditRecord], in environment: EnvironmentID?) -> Statement {
        insert(records.map { ($0, -1) }, in: environment)
    }

    /// Returns the statement that inserts records in a ``WriteBatch``: each one only if its decision was not missed.
    ///
    /// - Parameter name: Names the environment if its number is not available yet.
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
