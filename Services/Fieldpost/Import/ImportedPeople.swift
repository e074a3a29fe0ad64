import Access
import Essentials
import FoundationEssentials
import Model
import Postgres
import ObjectStore

/// Checks the people that imported objects are of, and the objects of `/common` to which they refer, by the rules that
/// hold for devices.
///
/// A referenced object must be stored, or be on a line before. One that is deleted while the import runs may still be
/// referred to: then `task-fan-out` removes the membership, as after any deletion.
///
/// An import may do two things that no device may: write into the realm of an address that no person has yet, and
/// let in a person whose address is not the environment's. Both are reported.
struct ImportedPeople {
    private let environment: EnvironmentID
    private var ids: [String: UUID] = [:]
    private var emails: [UUID: String] = [:]
    /// Addresses that were looked up and are no person's so far.
    private var strangers: Set<String> = []
    /// People and teams that are stored, or were on a line before.
    private var existing: Set<Referenced> = []
    /// Addresses that no person can log in with.
    private var foreign: Set<String> = []
    /// Addresses of which a warning was given.
    private var warned: Set<String> = []

    /// An object of `/common` to which others refer.
    private struct Referenced: Hashable {
        let kind: Kind
        let id: UUID
    }

    /// Maximum number of people and teams that are cached; beyond it they are looked up again.
    private static let countMax = 100_000

    /// An error in an object, or a warning about it.
    enum Finding: Equatable {
        case refused(String)
        case warning(String)
    }

    init(of environment: EnvironmentID) { self.environment = environment }

    /// Looks up the people that objects are of, and the objects to which they refer.
    ///
    /// - Parameter common: The number of the realm `/common`; `nil` if there is none yet.
    mutating func find(
        _ objects: [ImportedObject], common: Int32?, on connection: inout Connection
    ) throws(PostgresError) {
        let given = objects.compactMap(\.email)
        if !given.isEmpty {
            foreign = Set(try People.foreign(among: given, in: environment, on: &connection))
            // They were let in just now.
            strangers.subtract(given)
        }
        if ids.count + strangers.count + existing.count > Self.countMax {
            (ids, emails, strangers, warned, existing) = ([:], [:], [], [], [])
        }
        let references = Set(objects.flatMap(\.requiredReferences).map { Referenced(kind: $0.kind, id: $0.id) })
        if let common, !references.isSubset(of: existing) {
            let keys = references.subtracting(existing).map { ObjectKey(realm: common, kind: $0.kind, id: $0.id) }
            for (key, found) in try Presence.byKey(connection.run(Presence.load(keys, in: environment)))
            where found.isThere {
                existing.insert(Referenced(kind: key.kind, id: key.id))
            }
        }
        let wantedEmails = Set(objects.compactMap(\.realm.email)).filter { ids[$0] == nil && !strangers.contains($0) }
        let wantedIDs = Set(objects.filter { $0.kind == .personLookup }.map(\.id)).filter { emails[$0] == nil }
        guard !wantedEmails.isEmpty || !wantedIDs.isEmpty else { return }
        for (email, id) in try People.objects(of: wantedEmails.sorted(), in: environment, on: &connection) {
            add(email, id)
        }
        for (id, email) in try connection.run(People.emails(of: wantedIDs, in: environment)).decode(
            UUID.self, String.self)
        {
            add(email, id)
        }
        strangers.formUnion(wantedEmails.filter { ids[$0] == nil })
    }

    private mutating func add(_ email: String, _ id: UUID) { (ids[email], emails[id]) = (id, email) }

    /// Checks an object whose people were looked up; returns a warning once for each address.
    mutating func finding(of object: ImportedObject) -> Finding? {
        if let email = object.email, foreign.contains(email), warned.insert(email).inserted {
            return .warning("\(email) is let in, and cannot log in: its domain is none of the environment's")
        }
        let owner = object.realm.email.flatMap { ids[$0] }
        if let missing = object.requiredReferences.first(where: { !exists($0) }) { return .refused(missing.problem) }
        if OwnerRules.hasRequiredReferences(object.kind), let whose = object.kind == .personLookup ? object.id : owner,
            let fields = try? JSONObject(object.fields.bytes),
            let objection = OwnerRules.objection(
                to: object.kind, fields, of: whose, emails: emails[whose].map { [$0] } ?? [])
        {
            return .refused(objection)
        }
        if [.person, .team].contains(object.kind) { existing.insert(Referenced(kind: object.kind, id: object.id)) }
        guard let email = object.realm.email else { return nil }
        guard let owner else {
            guard warned.insert(email).inserted else { return nil }
            return .warning("no person has the address \(email): the realm stays closed until one is added")
        }
        guard object.kind != .location || object.id == owner else {
            return .refused("a Location has the id of its person, \(owner.text)")
        }
        return nil
    }

    private func exists(_ reference: OwnerRules.RequiredReference) -> Bool {
        existing.contains(Referenced(kind: reference.kind, id: reference.id))
    }
}

extension ImportedObject {
    fileprivate var requiredReferences: [OwnerRules.RequiredReference] {
        guard OwnerRules.hasRequiredReferences(kind), let object = try? JSONObject(fields.bytes) else { return [] }
        return OwnerRules.requiredReferences(of: kind, id, object)
    }
}
