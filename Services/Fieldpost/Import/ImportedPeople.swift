import Environments
import Essentials
import FoundationEssentials
import Model
import Postgres

/// Checks the people that imported objects are of and name, by the rules that hold for devices.
///
/// An import may do two things that no device may: write into the realm of an address that no person has yet, and
/// let in a person whose address is not the environment's. Both are reported.
struct ImportedPeople {
    private let environment: EnvironmentID
    private var ids: [String: UUID] = [:]
    private var emails: [UUID: String] = [:]
    /// Addresses and ids that were looked up and are no person's so far.
    private var strangers: (emails: Set<String>, ids: Set<UUID>) = ([], [])
    /// Addresses that no person can log in with.
    private var foreign: Set<String> = []
    /// Addresses of which a warning was given.
    private var warned: Set<String> = []

    /// Maximum number of people that are cached; beyond it they are looked up again.
    private static let countMax = 100_000

    /// An error in an object, or a warning about it.
    enum Finding: Equatable {
        case refused(String)
        case warning(String)
    }

    init(of environment: EnvironmentID) { self.environment = environment }

    /// Looks up the people that objects are of and name.
    mutating func find(_ objects: [ImportedObject], on connection: inout Connection) throws(PostgresError) {
        let given = objects.compactMap { object in object.email.map { (email: $0, id: object.id) } }
        if !given.isEmpty {
            foreign = Set(try People.foreign(among: given.map(\.email), in: environment, on: &connection))
            // They were let in just now.
            strangers.emails.subtract(given.map(\.email))
            strangers.ids.subtract(given.map(\.id))
        }
        if ids.count + strangers.emails.count + strangers.ids.count > Self.countMax {
            (ids, emails, strangers, warned) = ([:], [:], ([], []), [])
        }
        let wantedEmails = Set(objects.compactMap(\.realm.email)).filter {
            ids[$0] == nil && !strangers.emails.contains($0)
        }
        let wantedIDs = Set(objects.compactMap(\.namedPerson)).filter {
            emails[$0] == nil && !strangers.ids.contains($0)
        }
        guard !wantedEmails.isEmpty || !wantedIDs.isEmpty else { return }
        for (email, id) in try People.objects(of: wantedEmails.sorted(), in: environment, on: &connection) {
            add(email, id)
        }
        for (id, email) in try connection.run(People.emails(of: wantedIDs, in: environment)).decode(
            UUID.self, String.self)
        {
            add(email, id)
        }
        strangers.emails.formUnion(wantedEmails.filter { ids[$0] == nil })
        strangers.ids.formUnion(wantedIDs.filter { emails[$0] == nil })
    }

    private mutating func add(_ email: String, _ id: UUID) { (ids[email], emails[id]) = (id, email) }

    /// Checks an object whose people were looked up; returns a warning once for each address.
    mutating func finding(of object: ImportedObject) -> Finding? {
        if let email = object.email, foreign.contains(email), warned.insert(email).inserted {
            return .warning("\(email) is let in, and cannot log in: its domain is none of the environment's")
        }
        let owner = object.realm.email.flatMap { ids[$0] }
        if let person = object.namedPerson {
            guard let email = emails[person] else {
                return .refused(
                    object.kind == .personLookup
                        ? "no person has this id: import the Person first" : OwnerRules.recipientUnknown)
            }
            let whose = object.kind == .personLookup ? person : owner
            if let whose, let fields = try? JSONObject(object.fields.bytes),
                let objection = OwnerRules.objection(to: object.kind, fields, of: whose, emails: [email])
            {
                return .refused(objection)
            }
        }
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
}

extension ImportedObject {
    /// The person that the object is of or for by its id or fields, besides the one whose realm it is in.
    fileprivate var namedPerson: UUID? {
        switch kind {
        case .personLookup: id
        default: (try? JSONObject(fields.bytes)).flatMap { OwnerRules.recipient(of: kind, $0) }
        }
    }
}
