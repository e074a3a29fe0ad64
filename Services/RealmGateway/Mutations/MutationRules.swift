import Access
import Essentials
import FoundationEssentials
import Model

/// An object as it is stored in PostgreSQL.
enum StoredObject: Equatable, Sendable {
    /// The object's fields as JSON.
    case live(fields: [UInt8])
    /// The object was deleted.
    case tombstone

    /// The fields; `nil` for a tombstone.
    var fields: [UInt8]? { if case .live(let fields) = self { fields } else { nil } }
}

/// The change of an object by an accepted mutation.
enum MutationChange: Equatable, Sendable {
    /// A new object with these fields.
    case insert(fields: [UInt8])
    /// These fields replace the object's fields of the same names; `null` is stored.
    case merge(fields: [UInt8])
    /// The object becomes a tombstone at once.
    case tombstone
    /// `deleteRequested` becomes true; the submitter deletes the entry in the back end, and then the object.
    case requestDeletion
    /// The object already has the requested state.
    case unchanged
}

/// Decides whether a mutation is permitted, and how it changes its object.
///
/// Mutations are idempotent. A person cannot give an entry a status that reports a back end's action, change a recorded
/// entry, or delete an entry that a back end may have.
enum MutationRules {
    /// Decides a mutation of the stored object. `nil`: neither the object nor a tombstone exists.
    ///
    /// - Parameters:
    ///   - position: The object's current position, 0 if it does not exist; `nil` if the batch has changed it, so that
    ///     no writer can have read it.
    ///   - realm: The class of the object's realm.
    ///   - author: The principal, with their permissions in the realm.
    ///   - now: The current time; a later stored time is from a wrong clock.
    /// - Throws: The reason for the rejection; the client's later mutations are not blocked.
    static func decide(
        _ mutation: Mutation, current: StoredObject?, at position: Int64? = nil, in realm: RealmClass = .user,
        by author: Author = .owner, now: Timestamp = Timestamp(millisecondsSinceEpoch: 1 << 53)
    ) throws(MutationProblem) -> MutationChange {
        var given: JSONObject?
        if let fields = mutation.fields {
            do { given = try JSONObject(fields) } catch { throw MutationProblem(.invalidJSON, "fields: \(error)") }
        }
        let writer = try permit(mutation, given, current, realm, author)
        if let expected = mutation.position, expected != position {
            let now = position.map { "is at \($0)" } ?? "was changed earlier in this request"
            throw MutationProblem(.versionConflict, "the object \(now), not at \(expected)")
        }
        if mutation.kind == .taskNote { try checkTask(of: given, current) }
        let change = try change(mutation, given, current, writer)
        return isOutdated(change, of: mutation.kind, current, now) ? .unchanged : change
    }

    /// Maximum time, in milliseconds, that a device's clock may be ahead of the server's.
    private static let clockDifferenceMax: Int64 = 5 * 60_000

    /// Returns whether a `Location` is older than the stored one from another of the person's devices: the newest one
    /// wins. A stored time in the future is ignored.
    private static func isOutdated(
        _ change: MutationChange, of kind: Kind, _ current: StoredObject?, _ now: Timestamp
    ) -> Bool {
        guard kind == .location, let stored = current?.fields else { return false }
        func time(_ fields: [UInt8]) -> Timestamp? {
            (try? JSONObject(fields))?.text(of: "timestamp").flatMap { Timestamp($0) }
        }
        switch change {
        case .insert(let fields), .merge(let fields):
            guard let new = time(fields), let old = time(stored) else { return false }
            return new < old && old.millisecondsSinceEpoch <= now.millisecondsSinceEpoch + clockDifferenceMax
        case .tombstone, .requestDeletion, .unchanged: return false
        }
    }

    private static func permit(
        _ mutation: Mutation, _ given: JSONObject?, _ current: StoredObject?, _ realm: RealmClass, _ author: Author
    ) throws(MutationProblem) -> Writer {
        var object = WriteTarget(
            mutation.kind, isOwn: try isOwn(mutation, current, author), exists: current?.fields != nil)
        if mutation.kind == .person, let given, given.value(of: "role") != nil {
            object.roleAfter = given.text(of: "role").flatMap(Role.init(rawValue:)) ?? .worker
            if let stored = current?.fields { object.roleBefore = Role(of: try self.object(stored)) }
        }
        let access = author.access
        let names = given?.members.map(\.key) ?? []
        if let problem = Permissions.objection(to: mutation.operation, object, fields: names, in: realm, access) {
            throw problem
        }
        guard access.standing != .integration else { return .integration }
        if let given, let person = author.person { try checkPerson(in: given, of: mutation, realm, person) }
        let grant = Permissions.grant(object, in: realm, access)
        return .person(author.person, emails: author.emails, fields: grant?.fields ?? [])
    }

    /// Returns whether the caller's permissions for own objects apply. A new note is the author's own.
    private static func isOwn(
        _ mutation: Mutation, _ current: StoredObject?, _ author: Author
    ) throws(MutationProblem) -> Bool {
        guard mutation.kind == .taskNote else { return mutation.id == author.person }
        guard let stored = current?.fields else { return true }
        return try object(stored).id(of: "author") == author.person
    }

    /// No person can report another person's task as done, or write a note in another person's name.
    private static func checkPerson(
        in given: JSONObject, of mutation: Mutation, _ realm: RealmClass, _ person: UUID
    ) throws(MutationProblem) {
        switch (mutation.kind, realm) {
        case (.fieldTask, .user), (.fieldTask, .team):
            guard let value = given.value(of: "completedBy"), !value.elementsEqual("null".utf8) else { return }
            guard given.id(of: "completedBy") != person else { return }
            throw MutationProblem(.invalidField, "'completedBy' must be your own Person's id, \(person.text), or null")
        case (.taskNote, _):
            guard given.value(of: "author") != nil, given.id(of: "author") != person else { return }
            throw MutationProblem(.invalidField, "'author' must be your own Person's id, \(person.text)")
        default: return
        }
    }

    /// A note stays with its task.
    private static func checkTask(of given: JSONObject?, _ current: StoredObject?) throws(MutationProblem) {
        guard let given, given.value(of: "task") != nil, let stored = current?.fields else { return }
        guard let task = try object(stored).id(of: "task"), given.id(of: "task") != task else { return }
        throw MutationProblem(.invalidField, "'task' cannot be changed; it is \(task.text)")
    }

    private static func change(
        _ mutation: Mutation, _ given: JSONObject?, _ current: StoredObject?, _ writer: Writer
    ) throws(MutationProblem) -> MutationChange {
        switch mutation.operation {
        case .put:
            let fields = try checkedFields(given, of: mutation, writer)
            switch (current, writer) {
            case (.tombstone, .person):
                guard mutation.kind.row.ids == .natural || mutation.restores else { throw deleted }
                return .insert(fields: try new(fields, mutation, writer))
            case (.none, _), (_, .integration): return .insert(fields: try new(fields, mutation, writer))
            case (.live(let stored), .person(_, _, let own)):
                return .merge(fields: try replacement(fields, own, of: try object(stored), mutation, writer))
            }
        case .patch:
            let fields = try checkedFields(given, of: mutation, writer)
            switch current {
            case .none: throw MutationProblem(.unknownObject, "there is no such object to patch; send a put first")
            case .tombstone: throw deleted
            case .live(let stored): return .merge(fields: try edit(fields, of: try object(stored), mutation, writer))
            }
        case .delete:
            guard given == nil else { throw MutationProblem(.fieldsMismatch, "a delete has no fields") }
            switch (current, writer) {
            // The tombstone may have been compacted since the delete was first sent.
            case (.none, _), (.tombstone, _): return .unchanged
            case (.live, .integration): return .tombstone
            case (.live(let stored), .person):
                return mutation.kind == .timeEntry ? try EntryEdits.deletion(of: try StoredEntry(stored)) : .tombstone
            }
        }
    }

    private static let deleted = MutationProblem(.deleted, "the object was deleted; its id cannot be used again")

    /// Validates the size and format of the fields of a put or patch. ``Permissions`` decides whether the caller may
    /// write them.
    ///
    /// - Returns: The fields; those of a person's entry in their stored form.
    private static func checkedFields(
        _ given: JSONObject?, of mutation: Mutation, _ writer: Writer
    ) throws(MutationProblem) -> JSONObject {
        let kind = mutation.kind
        guard let given else {
            throw MutationProblem(.fieldsMismatch, "a \(mutation.operation.rawValue) needs fields")
        }
        try checkSize(given.bytes.count, of: kind, "the fields have")
        guard kind == .timeEntry, case .person = writer else { return given }
        for member in given.members {
            guard let needed = EntryField(rawValue: member.key)?.objection(to: given.bytes[member.value]) else {
                continue
            }
            throw MutationProblem(.invalidField, "'\(member.key)' must be \(needed)")
        }
        // A person's entry may be incomplete: each given field is validated on its own.
        do { return try kind.checked(given) } catch {
            throw MutationProblem(.invalidField, "\(kind.rawValue) is invalid: \(error)")
        }
    }

    private static func checkSize(_ count: Int, of kind: Kind, _ subject: String) throws(MutationProblem) {
        let bytesMax = kind.fieldsBytesMax
        guard count <= bytesMax else {
            throw MutationProblem(.tooLarge, "\(subject) \(count) bytes; at most \(bytesMax) are allowed")
        }
    }

    private static func new(
        _ fields: JSONObject, _ mutation: Mutation, _ writer: Writer
    ) throws(MutationProblem) -> [UInt8] {
        if mutation.kind == .timeEntry, case .person = writer { return try EntryEdits.new(fields) }
        return try checked(fields, given: fields, of: mutation, writer).bytes
    }

    /// Returns the changes for a put over an existing object: the writer's fields that it omits become null, except an
    /// entry's `status` and `submitRequested`.
    private static func replacement(
        _ fields: JSONObject, _ own: [String], of stored: JSONObject, _ mutation: Mutation, _ writer: Writer
    ) throws(MutationProblem) -> [UInt8] {
        let given = Set(fields.members.map(\.key))
        let preserved = [EntryField.status.rawValue, EntryField.submitRequested.rawValue]
        let omitted = own.filter { name in
            !preserved.contains(name) && !given.contains(name) && stored.value(of: name) != nil
        }
        let nulls = try object(JSONObject.bytes(of: omitted.map { ($0, Array("null".utf8)[...]) }))
        return try edit(try object(fields.merging(nulls)), of: stored, mutation, writer)
    }

    private static func edit(
        _ fields: JSONObject, of stored: JSONObject, _ mutation: Mutation, _ writer: Writer
    ) throws(MutationProblem) -> [UInt8] {
        if mutation.kind == .defectCommand, stored.isTrue("submitRequested") {
            throw MutationProblem(.closed, "the command is submitted and cannot be changed; create another one")
        }
        let whole = stored.merging(fields)
        try checkSize(whole.count, of: mutation.kind, "the object would have")
        if mutation.kind == .timeEntry, case .person = writer {
            return try EntryEdits.edit(fields, of: try StoredEntry(stored.bytes))
        }
        let stores = try checked(try object(whole), given: fields, of: mutation, writer)
        return JSONObject.bytes(
            of: fields.members.compactMap { member in
                stores.value(of: member.key).map { (member.key, $0) }
            })
    }

    /// Validates the object that would be stored.
    ///
    /// - Returns: The object with the given fields in their stored form.
    private static func checked(
        _ whole: JSONObject, given: JSONObject, of mutation: Mutation, _ writer: Writer
    ) throws(MutationProblem) -> JSONObject {
        let fields: JSONObject
        do throws(FieldObjection) {
            fields = try mutation.kind.checked(whole, given: Set(given.members.map(\.key)))
        } catch {
            throw MutationProblem(.invalidField, "\(mutation.kind.rawValue) is invalid: \(error)")
        }
        if let objection = OwnerRules.objection(to: mutation.id, of: mutation.kind, fields) {
            throw MutationProblem(.invalidField, objection)
        }
        if case .person(let person?, let emails, _) = writer,
            let objection = OwnerRules.objection(to: mutation.kind, fields, of: person, emails: emails)
        {
            throw MutationProblem(.invalidField, objection)
        }
        return fields
    }

    private static func object(_ bytes: [UInt8]) throws(MutationProblem) -> JSONObject {
        do { return try JSONObject(bytes) } catch { throw unreadable("\(error)") }
    }

    static func unreadable(_ reason: String) -> MutationProblem {
        MutationProblem(.unreadable, "the stored object cannot be read: \(reason)")
    }
}
