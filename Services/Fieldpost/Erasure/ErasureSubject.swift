import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A person to erase from an environment, and the statements that concern them.
struct ErasureSubject {
    let environment: EnvironmentID
    /// In lower case.
    let email: String
    /// Their number in `access.person`; `nil` if they are not registered.
    let number: Int32?
    /// The id of their `Person` object.
    let object: UUID?
    /// The numbers of their own realms, `/users/…`, `/seen/…` and `/sent/…`, and of those of erased people: a service
    /// may have written into them what it was processing.
    let realms: [Int32]
    /// The numbers of the realms of shares from and to them.
    let shareRealms: [Int32]
    /// Those of shares from them.
    let ownShareRealms: [Int32]
    /// The name that replaces them in the audit log.
    let pseudonym: String

    /// The beginning of pseudonyms. No address of a person has it, because it has no `@`.
    static let pseudonymPrefix = "erased-"

    /// Kinds of requests to services, in a realm that no device opens.
    private static let pollKinds: [Kind] = [.poll, .defectPoll]
    /// Kinds with the id of a record of the back end.
    private static let recordKinds: [Kind] = [.timeEntry, .seenRecord]
    /// Kinds that a person shares.
    private static let sharedKinds: [Kind] = [.appointment, .note]

    /// Loads the person, who need not be registered: other rows may have the address.
    static func load(
        _ address: EmailAddress, in environment: EnvironmentID, pseudonym: String, on connection: inout Connection
    ) throws -> ErasureSubject {
        let email = address.description
        let person = try connection.run(
            "SELECT id, object_id FROM access.person WHERE environment_id = \(environment) AND email = \(email)"
        ).first?.decode(Int32.self, UUID.self)
        let id = person?.1.text ?? ""
        let results = try connection.run([
            """
            SELECT id FROM realm.realm WHERE environment_id = \(environment)
                AND (path IN ('/users/' || \(email), '/seen/' || \(email), '/sent/' || \(email))
                    OR starts_with(path, '/users/' || \(pseudonymPrefix))
                    OR starts_with(path, '/seen/' || \(pseudonymPrefix))
                    OR starts_with(path, '/sent/' || \(pseudonymPrefix)))
            """,
            // A share's id is made of eight bytes of the owner's and of the recipient's.
            """
            SELECT id, starts_with(path, '/shares/' || left(\(id), 18)) FROM realm.realm
            WHERE environment_id = \(environment) AND \(person != nil)
                AND (starts_with(path, '/shares/' || left(\(id), 18)) OR path LIKE '/shares/%' || right(\(id), 17))
            """,
        ])
        let shares = try results[1].decode(Int32.self, Bool.self)
        return ErasureSubject(
            environment: environment, email: email, number: person?.0, object: person?.1,
            realms: try results[0].decode(Int32.self), shareRealms: shares.map(\.0),
            ownShareRealms: shares.filter(\.1).map(\.0), pseudonym: pseudonym)
    }

    var mention: String { ErasureRule.mention(of: email, id: object?.text) }

    /// The environment's rows of a table with a condition.
    private func rows(
        _ table: String, _ content: String, _ condition: Statement, changes: Statement? = nil, isGuarded: Bool = false,
        precedesObjects: Bool = false
    ) -> ErasureStep {
        ErasureStep(
            table: table, content: content, condition: "environment_id = \(environment) AND (\(condition))",
            changes: changes, isGuarded: isGuarded, precedesObjects: precedesObjects)
    }

    /// A number that no person has, if they are not registered.
    private var personNumber: Int32 { number ?? 0 }
    /// An id that no object has, if they are not registered.
    private var objectID: UUID { object ?? UUID.zero }
    private var ofOwnRealms: Statement { "realm_id = ANY (\(realms))" }
    private var ofPerson: Statement { "person_id = \(personNumber)" }
    private var ofEmail: Statement { "email = \(email)" }

    /// All rows to erase, in order: an entry is deleted before its ledger, without which it would be submitted again.
    var steps: [ErasureStep] { deviceSteps + objectSteps + backEndSteps + otherSteps + [auditStep] }

    private var deviceSteps: [ErasureStep] {
        [
            rows("device.mutation", "stored responses to mutations", ofPerson, isGuarded: true),
            rows("device.client", "clients of devices", ofPerson, isGuarded: true),
            rows("device.task_author", "authors of changes of tasks", "author_id = \(objectID)"),
            rows("onboarding.refresh_token", "devices and their tokens", ofPerson),
            rows("onboarding.session", "logins in progress", "\(ofEmail) OR \(ofPerson)"),
            ErasureStep(
                table: "onboarding.rate", content: "rate counters of registrations",
                condition: "starts_with(key, 'address:') AND split_part(key, ' ', 2) = \(email)"),
            rows("delivery.shipment", "deliveries of notices", ofOwnRealms),
        ]
    }

    private var backEndSteps: [ErasureStep] {
        [
            rows("submission.attempt", "attempts to submit entries", ofOwnRealms),
            rows("submission.ledger", "ledger of submitted entries", ofOwnRealms),
            rows("backend.person", "identifiers in the back end", ofEmail),
            rows("audience.person", "choices in the back end", ofEmail),
            rows("backend.defect_account", "own login of the defect tracker", ofOwnRealms),
            rows("backend.defect_login", "login name of the defect tracker", ofEmail),
            rows("defect.attempt", "commands in progress at the defect tracker", ofOwnRealms),
            rows("defect.mirror", "mirrored defects", ofOwnRealms),
            rows("defect.own_run", "polls with the own login", ofOwnRealms),
            rows("defect.own_watermark", "progress of polls with the own login", ofOwnRealms),
        ]
    }

    private var objectSteps: [ErasureStep] {
        let polls: Statement = """
            kind = ANY (\(Self.pollKinds)) AND NOT deleted AND fields::json->>'person' = \(email)
            """
        let keys: Statement = """
            (realm_id, kind, id) IN (
                SELECT o.realm_id, o.kind, o.id FROM store.object o WHERE o.environment_id = \(environment)
                    AND o.kind = ANY (\(Self.pollKinds)) AND NOT o.deleted AND o.fields::json->>'person' = \(email))
            """
        let finished: Statement = """
            poll_id IN (SELECT o.id FROM store.object o WHERE o.environment_id = \(environment)
                AND o.kind = \(Kind.poll) AND NOT o.deleted AND o.fields::json->>'person' = \(email))
            """
        return [
            rows("poll.finished", "results of polls", finished),
            rows("store.change", "change log of polls", keys),
            rows("store.object", "requests to poll the back end", polls),
            rows("store.object", "objects of the person's realms", ofOwnRealms, isGuarded: true),
            rows("store.change", "change log of the person's realms", ofOwnRealms),
        ]
    }

    private var otherSteps: [ErasureStep] {
        [
            rows(
                "blob.content", "images and documents",
                "NOT \(isShownByOthers) AND \(isBlobOfPerson)", precedesObjects: true),
            rows(
                "task.copy", "states of tasks of the person",
                "assignee_id = \(objectID) OR completed_by = \(objectID) OR \(ofOwnRealms)",
                changes: """
                    SET version = version + 1, assignee_id = nullif(assignee_id, \(objectID)),
                    completed_by = nullif(completed_by, \(objectID)),
                    realm_id = CASE WHEN realm_id = ANY (\(realms)) THEN NULL ELSE realm_id END
                    """),
            rows(
                "task.note", "states of notes in the person's realms", ofOwnRealms,
                changes: "SET version = version + 1, realm_id = NULL"),
            rows("pipeline.parked", "deferred keys", "subject ~* \(mention)"),
            rows(
                "pipeline.parked", "deferred keys of others, under a pseudonym",
                "reason ~* \(mention) AND NOT subject ~* \(mention)",
                changes: "SET reason = regexp_replace(reason, \(mention), \(pseudonym), 'gi')"),
            rows("access.address", "address of the environment", ofEmail),
        ]
    }

    /// Whether a row of `blob.content` is the person's: from any uploader, their picture and those of their realms.
    private var isBlobOfPerson: Statement {
        """
        (uploader = \(personNumber) OR EXISTS (
            SELECT FROM blob.reference r WHERE r.environment_id = \(environment)
                AND r.blob_id = blob.content.id AND (r.id = \(objectID) OR r.realm_id = ANY (\(realms)))))
        """
    }

    /// Whether an object of others shows a row of `blob.content`. The person's notes are deleted with their images.
    private var isShownByOthers: Statement {
        """
        EXISTS (
            SELECT FROM blob.reference r WHERE r.environment_id = \(environment) AND r.blob_id = blob.content.id
                AND r.id <> \(objectID) AND r.realm_id <> ALL (\(realms)) AND NOT (
                    r.kind = \(Kind.taskNote) AND EXISTS (
                        SELECT FROM store.object o WHERE o.environment_id = \(environment) AND o.realm_id = r.realm_id
                            AND o.kind = r.kind AND o.id = r.id
                            AND lower(o.fields::json->>'author') = \(objectID.text))))
        """
    }

    /// Records of the whole installation have no environment. The person's logins have the names and addresses of
    /// devices, and the account at the identity provider.
    private var auditStep: ErasureStep {
        let isLogin: Statement = "actor ~* \(mention) AND action ~ '^(login|device)[.]'"
        return ErasureStep(
            table: "access.audit", content: "records of the audit log, under a pseudonym",
            condition: """
                coalesce(environment_id, \(environment)) = \(environment)
                    AND (actor ~* \(mention) OR subject ~* \(mention) OR detail::text ~* \(mention))
                """,
            changes: """
                SET address = CASE WHEN actor ~* \(mention) THEN '' ELSE address END,
                actor = regexp_replace(actor, \(mention), \(pseudonym), 'gi'),
                subject = CASE WHEN \(isLogin) THEN \(pseudonym)
                    ELSE regexp_replace(subject, \(mention), \(pseudonym), 'gi') END,
                detail = CASE WHEN \(isLogin) THEN detail - 'device'
                    ELSE regexp_replace(detail::text, \(mention), \(pseudonym), 'gi')::jsonb END
                """)
    }

    /// The statements of the last transaction. The realms' numbers stay, under the pseudonym: services cache them.
    var end: [Statement] {
        [
            "DELETE FROM access.person WHERE environment_id = \(environment) AND id = \(personNumber)",
            """
            UPDATE realm.realm SET path = left(path, strpos(substr(path, 2), '/') + 1) || \(pseudonym)
            WHERE environment_id = \(environment)
                AND path IN ('/users/' || \(email), '/seen/' || \(email), '/sent/' || \(email))
            """,
        ]
    }

    // MARK: Reading

    /// Counts the objects of the person's realms by kind. Rows: kind, count.
    var ownKinds: Statement {
        """
        SELECT k.name, count(*) FROM store.object o JOIN realm.kind k ON k.number = o.kind
        WHERE o.environment_id = \(environment) AND o.realm_id = ANY (\(realms)) AND NOT o.deleted
        GROUP BY k.name ORDER BY k.name
        """
    }

    /// Selects the ids of the person's records in the back end. Rows: the id.
    var backEndRecords: Statement {
        """
        SELECT DISTINCT id FROM (
            SELECT fields::json->>'backendId' AS id FROM store.object WHERE environment_id = \(environment)
                AND realm_id = ANY (\(realms)) AND kind = ANY (\(Self.recordKinds)) AND NOT deleted
            UNION ALL
            SELECT backend_id FROM submission.ledger
            WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        ) r WHERE id IS NOT NULL ORDER BY id
        """
    }

    /// Selects the entries whose submission may have created a record without a known id. Rows: the entry's id as text,
    /// which is in the record.
    var unfinishedSubmissions: Statement {
        """
        SELECT entry_id::text FROM submission.ledger
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms)) AND phase <> 'settled'
            AND backend_id IS NULL ORDER BY 1
        """
    }

    /// Counts the person's images that objects of others show. Rows: the count.
    var sharedImages: Statement {
        """
        SELECT count(*) FROM blob.content
        WHERE environment_id = \(environment) AND \(isBlobOfPerson) AND \(isShownByOthers)
        """
    }

    /// Selects the next objects outside of the person's realms that refer to the person, in order of their keys. Rows:
    /// as read by `RealmObject`. A notice about a share or item of the person has their name: its subject is the item,
    /// or an id that begins with half of theirs.
    func mentions(after key: (realm: Int32, kind: Int16, id: UUID), countMax: Int64) -> Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment) AND (realm_id, kind, id) > (\(key.realm), \(key.kind), \(key.id))
            AND NOT deleted AND realm_id <> ALL (\(realms)) AND kind <> ALL (\(Self.pollKinds))
            AND (realm_id = ANY (\(shareRealms)) OR id = \(objectID) OR fields ~* \(mention)
                OR kind = \(Kind.notice) AND (starts_with(lower(fields::json->>'about'), left(\(objectID.text), 18))
                    OR lower(fields::json->>'about') IN (
                        SELECT i.id::text FROM store.object i WHERE i.environment_id = \(environment)
                            AND i.realm_id = ANY (\(realms + ownShareRealms)) AND i.kind = ANY (\(Self.sharedKinds)))))
        ORDER BY realm_id, kind, id LIMIT \(countMax)
        """
    }
}
