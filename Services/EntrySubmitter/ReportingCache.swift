import BackendConnections
import BackendProtocol
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What people may report on, kept for a short while: an entry is checked against it, and a refusal is decided only
/// from what was just read.
struct ReportingCache {
    /// How old what an entry is accepted by may be. The back end has the last word anyway.
    private static let ageMax = Duration.seconds(10)
    /// So many are looked through for old ones, and, if none are old, all are forgotten.
    private static let countMax = 500

    private struct Entry<Value> {
        let value: Value
        let loadedAt: ContinuousClock.Instant
    }

    private struct Name: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private struct Own {
        var catalogue: UUID?
        var templates: [UUID: ReportingTemplate] = [:]
        var contexts: [UUID: ReportingContext] = [:]
    }

    /// What was loaded since then is fresh.
    private var freshSince = ContinuousClock.now
    private var own: [Name: Entry<Own>] = [:]
    private var nodes: [Name: Entry<[UUID: ReportingTreeNode]>] = [:]
    private var people: [String: Entry<BackendPerson?>] = [:]
    private var textLimits: [EnvironmentID: (revision: Int64, limit: TextLimit)] = [:]

    /// A batch of decisions begins: what is read from now on is fresh for all of them.
    mutating func beginBatch() { freshSince = .now }

    private func isGood<Value>(_ entry: Entry<Value>, isFresh: Bool) -> Bool {
        isFresh ? entry.loadedAt >= freshSince : ContinuousClock.now - entry.loadedAt < Self.ageMax
    }

    private static func forgetOld<Name, Value>(_ entries: inout [Name: Entry<Value>]) {
        guard entries.count >= countMax else { return }
        let now = ContinuousClock.now
        entries = entries.filter { now - $0.value.loadedAt < ageMax }
        if entries.count >= countMax { entries = [:] }
    }

    /// The reporting data of a person's realm.
    ///
    /// - Parameter isFresh: Read since the batch began, whatever is kept.
    /// - Throws: `PostgresError`, or `Undecodable` for an object among the data.
    mutating func objects(
        realm: Int32, in environment: EnvironmentID, isFresh: Bool, directory: inout RealmDirectory,
        on connection: inout Connection
    ) throws -> ReportingObjects {
        let own = try own(Name(environment: environment, realm: realm), isFresh, &connection)
        var objects = ReportingObjects(templates: own.templates, contexts: own.contexts, nodes: [:])
        guard let catalogue = own.catalogue,
            let id = try directory.id(of: .catalogue(catalogue), in: environment, create: false, on: &connection)
        else { return objects }
        objects.nodes = try nodes(Name(environment: environment, realm: id), isFresh, &connection)
        return objects
    }

    /// How the back end calls a person; `nil` when it has no such person.
    mutating func person(
        _ email: String, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> BackendPerson? {
        let name = "\(environment)/\(email)"
        if let kept = people[name], ContinuousClock.now - kept.loadedAt < Self.ageMax { return kept.value }
        Self.forgetOld(&people)
        let person = try BackendPerson.load([email], in: environment, on: &connection)[email]
        people[name] = Entry(value: person, loadedAt: .now)
        return person
    }

    /// The longest text that the back end keeps; the usual limit while there is no adapter.
    mutating func textLimit(
        in environment: EnvironmentID, revision: Int64, _ adapters: BackendRegistry, on connection: inout Connection
    ) throws -> TextLimit {
        if let kept = textLimits[environment], kept.revision == revision { return kept.limit }
        do {
            let limit = try adapters.adapter(of: environment, on: &connection).capabilities.textLimit
            textLimits[environment] = (revision, limit)
            return limit
        } catch is MissingBackend {
            return TextLimit(TimeEntry.submittedTextLengthMax, .utf16)
        }
    }

    private mutating func own(
        _ name: Name, _ isFresh: Bool, _ connection: inout Connection
    ) throws -> Own {
        if let kept = own[name], isGood(kept, isFresh: isFresh) { return kept.value }
        Self.forgetOld(&own)
        var loaded = Own()
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
            default: break  // Not asked for.
            }
        }
        own[name] = Entry(value: loaded, loadedAt: .now)
        return loaded
    }

    private mutating func nodes(
        _ name: Name, _ isFresh: Bool, _ connection: inout Connection
    ) throws -> [UUID: ReportingTreeNode] {
        if let kept = nodes[name], isGood(kept, isFresh: isFresh) { return kept.value }
        Self.forgetOld(&nodes)
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
