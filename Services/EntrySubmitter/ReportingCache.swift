import BackendConnections
import BackendProtocol
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A short-lived cache of reporting data for the validation of entries. Refusals are based only on data that was just
/// read.
struct ReportingCache {
    /// Maximum age of data that an entry is accepted by. The back end validates it anyway.
    private static let ageMax = Duration.seconds(10)
    /// Number of elements from which expired ones are removed, or all if none has expired.
    private static let countMax = 500

    private struct Entry<Value> {
        let value: Value
        let loadedAt: ContinuousClock.Instant
    }

    private struct Name: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private struct PersonalData {
        var catalogue: UUID?
        var templates: [UUID: ReportingTemplate] = [:]
        var contexts: [UUID: ReportingContext] = [:]
    }

    /// Data that was loaded since this time is fresh.
    private var freshSince = ContinuousClock.now
    private var personal: [Name: Entry<PersonalData>] = [:]
    private var nodes: [Name: Entry<[UUID: ReportingTreeNode]>] = [:]
    private var people: [String: Entry<BackendPerson?>] = [:]
    private var textLimits: [EnvironmentID: (revision: Int64, limit: TextLimit)] = [:]

    /// Begins a batch of decisions: data that is read from now on is fresh for all of them.
    mutating func beginBatch() { freshSince = .now }

    private func isUsable<Value>(_ entry: Entry<Value>, isFresh: Bool) -> Bool {
        isFresh ? entry.loadedAt >= freshSince : ContinuousClock.now - entry.loadedAt < Self.ageMax
    }

    private static func removeExpired<Name, Value>(_ entries: inout [Name: Entry<Value>]) {
        guard entries.count >= countMax else { return }
        let now = ContinuousClock.now
        entries = entries.filter { now - $0.value.loadedAt < ageMax }
        if entries.count >= countMax { entries = [:] }
    }

    /// Returns the reporting data of a person's realm.
    ///
    /// - Parameter isFresh: Whether only data that was read in this batch is used.
    /// - Throws: `PostgresError`, or `StoredJSONError` for an object of the data.
    mutating func objects(
        realm: Int32, in environment: EnvironmentID, isFresh: Bool, directory: inout RealmDirectory,
        on connection: inout Connection
    ) throws -> ReportingObjects {
        let personal = try personalData(Name(environment: environment, realm: realm), isFresh, &connection)
        var objects = ReportingObjects(templates: personal.templates, contexts: personal.contexts, nodes: [:])
        guard let catalogue = personal.catalogue,
            let id = try directory.id(of: .catalogue(catalogue), in: environment, create: false, on: &connection)
        else { return objects }
        objects.nodes = try nodes(Name(environment: environment, realm: id), isFresh, &connection)
        return objects
    }

    /// Returns a person's identifiers in the back end; `nil` if it has no such person.
    mutating func person(
        _ email: String, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> BackendPerson? {
        let name = "\(environment)/\(email)"
        if let entry = people[name], ContinuousClock.now - entry.loadedAt < Self.ageMax { return entry.value }
        Self.removeExpired(&people)
        let person = try BackendPerson.load([email], in: environment, on: &connection)[email]
        people[name] = Entry(value: person, loadedAt: .now)
        return person
    }

    /// Returns the maximum length of a text in the back end; the default while there is no adapter.
    mutating func textLimit(
        in environment: EnvironmentID, revision: Int64, _ adapters: BackendRegistry, on connection: inout Connection
    ) throws -> TextLimit {
        if let entry = textLimits[environment], entry.revision == revision { return entry.limit }
        do {
            let limit = try adapters.adapter(of: environment, on: &connection).capabilities.textLimit
            textLimits[environment] = (revision, limit)
            return limit
        } catch is MissingBackend {
            return TextLimit(TimeEntry.submittedTextLengthMax, .utf16)
        }
    }

    private mutating func personalData(
        _ name: Name, _ isFresh: Bool, _ connection: inout Connection
    ) throws -> PersonalData {
        if let entry = personal[name], isUsable(entry, isFresh: isFresh) { return entry.value }
        Self.removeExpired(&personal)
        var loaded = PersonalData()
        let decoder = JSONDecoder()
        let kinds: [Kind] = [.user, .reportingTemplate, .reportingContext]
        for row in try connection.run(RealmObject.load(kinds: kinds, realm: name.realm, in: name.environment)) {
            guard let object = try RealmObject(row) else { continue }
            switch object.key.kind {
            case .user: loaded.catalogue = try object.decoded(as: User.self, by: decoder)?.catalogue
            case .reportingTemplate:
                loaded.templates[object.key.id] = try object.decoded(as: ReportingTemplate.self, by: decoder)
            case .reportingContext:
                loaded.contexts[object.key.id] = try object.decoded(as: ReportingContext.self, by: decoder)
            default: break  // Not requested.
            }
        }
        personal[name] = Entry(value: loaded, loadedAt: .now)
        return loaded
    }

    private mutating func nodes(
        _ name: Name, _ isFresh: Bool, _ connection: inout Connection
    ) throws -> [UUID: ReportingTreeNode] {
        if let entry = nodes[name], isUsable(entry, isFresh: isFresh) { return entry.value }
        Self.removeExpired(&nodes)
        var loaded: [UUID: ReportingTreeNode] = [:]
        let decoder = JSONDecoder()
        for row in try connection.run(
            RealmObject.load(kinds: [.reportingTreeNode], realm: name.realm, in: name.environment))
        {
            guard let object = try RealmObject(row) else { continue }
            loaded[object.key.id] = try object.decoded(as: ReportingTreeNode.self, by: decoder)
        }
        nodes[name] = Entry(value: loaded, loadedAt: .now)
        return loaded
    }
}
