import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Validates the people of imported objects, and references to objects of `/common`, by the rules for devices.
///
/// A referenced object must be stored, or be on an earlier line. If one is deleted during the import, references to it
/// may be imported; `task-fan-out` then removes the membership, as after any deletion.
///
/// An import may do two things that no device may: write to the realm of an address without a person, and add a person
/// whose address is not the environment's. Both are reported.
struct ImportedPeople {
    private let environment: EnvironmentID
    private var ids: [String: UUID] = [:]
    private var emails: [UUID: String] = [:]
    /// Addresses that were looked up and have no person yet.
    private var unregistered: Set<String> = []
    /// People and teams that are stored, or were on an earlier line.
    private var existing: Set<Referenced> = []
    /// Addresses that no person can log in with.
    private var foreign: Set<String> = []
    /// Addresses that were reported with a warning.
    private var warned: Set<String> = []

    /// A referenced object of `/common`.
    private struct Referenced: Hashable {
        let kind: Kind
        let id: UUID
    }

    /// Maximum number of cached people and teams; beyond it the cache is cleared.
    private static let countMax = 100_000

    /// An error in an object, or a warning about it.
    enum Finding: Equatable {
        case refused(String)
        case warning(String)
    }

    init(of environment: EnvironmentID) { self.environment = environment }

    /// Looks up the people of objects, and the objects to which they refer.
    ///
    /// - Parameter common: The id of the realm `/common`; `nil` if it does not exist yet.
    mutating func find(
        _ objects: [ImportedObject], common: Int32?, on connection: inout Connection
    ) throws(PostgresError) {
        let given = objects.compactMap(\.email)
        if !given.isEmpty {
            foreign = Set(try People.foreign(among: given, in: environment, on: &connection))
            // They were added before this call.
            unregistered.subtract(given)
        }
        if ids.count + unregistered.count + existing.count > Self.countMax {
            (ids, emails, unregistered, warned, existing) = ([:], [:], [], [], [])
        }
        let references = Set(objects.flatMap(\.requiredReferences).map { Referenced(kind: $0.kind, id: $0.id) })
        if let common, !references.isSubset(of: existing) {
            let keys = references.subtracting(existing).map { ObjectKey(realm: common, kind: $0.kind, id: $0.id) }
            for (key, found) in try Presence.byKey(connection.run(Presence.load(keys, in: environment)))
            where found.isThere {
                existing.insert(Referenced(kind: key.kind, id: key.id))
            }
        }
        let missingEmails = Set(objects.compactMap(\.realm.email)).filter {
            ids[$0] == nil && !unregistered.contains($0)
        }
        let missingIDs = Set(objects.filter { $0.kind == .personLookup }.map(\.id)).filter { emails[$0] == nil }
        guard !missingEmails.isEmpty || !missingIDs.isEmpty else { return }
        for (email, id) in try People.objects(of: missingEmails.sorted(), in: environment, on: &connection) {
            add(email, id)
        }
        for (id, email) in try connection.run(People.emails(of: missingIDs, in: environment)).decode(
            UUID.self, String.self)
        {
            add(email, id)
        }
        unregistered.formUnion(missingEmails.filter { ids[$0] == nil })
    }

    private mutating func add(_ email: String, _ id: UUID) { (ids[email], emails[id]) = (id, email) }

    /// Validates an object whose people were looked up; returns a warning once per address.
    mutating func finding(of object: ImportedObject) -> Finding? {
        if let email = object.email, foreign.contains(email), warned.insert(email).inserted {
            return .warning("\(email) is added, but cannot log in: its domain is not the environment's")
        }
        let owner = object.realm.email.flatMap { ids[$0] }
        if let missing = object.requiredReferences.first(where: { !exists($0) }) { return .refused(missing.problem) }
        if OwnerRules.hasRequiredReferences(object.kind), let person = object.kind == .personLookup ? object.id : owner,
            let fields = try? JSONObject(object.fields.bytes),
            let objection = OwnerRules.objection(
                to: object.kind, fields, of: person, emails: emails[person].map { [$0] } ?? [])
        {
            return .refused(objection)
        }
        if [.person, .team].contains(object.kind) { existing.insert(Referenced(kind: object.kind, id: object.id)) }
        guard let email = object.realm.email else { return nil }
        guard let owner else {
            guard warned.insert(email).inserted else { return nil }
            return .warning("no person has the address \(email): the realm is inaccessible until one is added")
        }
        guard object.kind != .location || object.id == owner else {
            return .refused("the id of a Location must be that of its person, \(owner.text)")
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
