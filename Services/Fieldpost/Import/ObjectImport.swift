import Access
import Audit
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Writes objects in batches, one transaction each. While PostgreSQL writes a batch, the next one is prepared.
///
/// An interrupted import resumes when the same file is imported again: stored objects with the same fields are
/// unchanged.
struct ObjectImport: ~Copyable {
    /// The numbers of objects by result.
    struct Counts: Encodable {
        /// Objects that did not exist.
        var created = 0
        /// Objects that existed with other fields, or were deleted.
        var replaced = 0
        /// Objects that existed with the same fields, or occur again later in the same batch.
        var unchanged = 0
    }

    private struct PendingObject {
        let line: Int
        let object: ImportedObject
    }

    /// Maximum number of objects per transaction, which holds the lock of the environment's counter.
    static let batchCountMax = 2_000
    /// Maximum size of a batch's fields.
    static let batchBytesMax = 2 << 20

    let environment: EnvironmentID
    /// Whether Fieldpost has a back end for the people's choices and entries.
    let hasBackend: Bool
    /// The environment's kinds.
    let catalogue: KindCatalogue
    /// The name of the source, for the audit log.
    private let name: String
    private var connection: Connection
    private var directory = RealmDirectory()
    private var pending: [PendingObject] = []
    private var pendingBytes = 0
    /// The batch in flight.
    private var writing: (count: Int, isAudited: Bool)?
    private var isAudited = false
    private(set) var counts = Counts()
    private(set) var problems: ImportProblems
    /// Warnings about lines that only an import may write.
    private(set) var warnings: ImportProblems
    private var importedPeople: ImportedPeople

    init(
        _ name: String, in environment: EnvironmentID, hasBackend: Bool, catalogue: KindCatalogue,
        on connection: consuming Connection,
        problemCountMax: Int
    ) {
        self.name = name
        self.environment = environment
        self.hasBackend = hasBackend
        self.catalogue = catalogue
        self.connection = connection
        problems = ImportProblems(retainedCountMax: problemCountMax)
        warnings = ImportProblems(retainedCountMax: problemCountMax)
        importedPeople = ImportedPeople(of: environment)
    }

    /// Adds an object to the current batch.
    mutating func add(_ object: ImportedObject, line: Int) throws {
        pending.append(PendingObject(line: line, object: object))
        pendingBytes += object.fields.bytes.count
        if pending.count >= Self.batchCountMax || pendingBytes >= Self.batchBytesMax { try write() }
    }

    /// Rejects a line.
    mutating func reject(_ problem: some Error, line: Int) { problems.add(problem, at: line) }

    /// Waits until all added objects are written.
    mutating func flush() throws {
        try write()
        try settle()
    }

    /// Writes the remaining objects, and the final audit record if there was any write.
    mutating func end() throws {
        try flush()
        guard isAudited else { return }
        let detail = [
            "state": "ended", "created": "\(counts.created)", "replaced": "\(counts.replaced)",
            "unchanged": "\(counts.unchanged)", "refused": "\(problems.count)",
        ]
        try connection.run(Administrator.commandLine.audit(.objectsImported, name, in: environment, detail: detail))
    }

    // MARK: Writing

    private mutating func write() throws {
        guard !pending.isEmpty else { return }
        try settle()
        let objects = try validated(pending)
        pending.removeAll(keepingCapacity: true)
        pendingBytes = 0
        guard !objects.isEmpty else { return }
        let realms = try directory.ids(
            of: Set(objects.map(\.realm)), in: environment, create: true, on: &connection)
        var batch = ImportBatch(environment: environment, capacity: objects.count)
        for object in objects {
            guard let realm = realms[object.realm] else {
                throw PostgresError(sqlState: nil, message: "the realm \(object.realm) could not be created")
            }
            batch.put(ObjectKey(realm: realm, kind: object.kind, id: object.id), object.fields)
        }
        var statements = [batch.statement]
        if !isAudited {
            statements.append(
                Administrator.commandLine.audit(
                    .objectsImported, name, in: environment, detail: ["state": "begun"], decision: 0))
        }
        try connection.start(statements)
        writing = (count: objects.count, isAudited: !isAudited)
    }

    /// Returns the valid objects, after people were added; without `Person` objects that belong to no person.
    private mutating func validated(_ pending: [PendingObject]) throws -> [ImportedObject] {
        let orphans = try addPeople(pending.filter { $0.object.kind == .person })
        let rest = pending.filter { !orphans.contains($0.line) || $0.object.kind != .person }
        let common = try directory.id(of: .common, in: environment, create: false, on: &connection)
        try importedPeople.find(rest.map(\.object), common: common, on: &connection)
        return rest.compactMap { item in
            switch importedPeople.finding(of: item.object) {
            case .refused(let problem):
                problems.add(problem, at: item.line)
                return nil
            case .warning(let text): warnings.add(text, at: item.line)
            case nil: break
            }
            return item.object
        }
    }

    /// - Returns: The lines of `Person` objects that belong to no person.
    private mutating func addPeople(_ people: [PendingObject]) throws -> Set<Int> {
        if people.isEmpty { return [] }
        let claims = people.map { People.Claim(id: $0.object.id, email: $0.object.email) }
        var refused: Set<Int> = []
        for (person, problem) in zip(people, try People.claim(claims, in: environment, on: &connection)) {
            guard let problem else { continue }
            problems.add(problem, at: person.line)
            refused.insert(person.line)
        }
        return refused
    }

    /// Waits for the batch in flight.
    private mutating func settle() throws {
        guard let (count, isFirst) = writing else { return }
        writing = nil
        // The first two columns of the statement of an `ImportBatch`.
        let row = try connection.finish()[0][0]
        let (written, created): (Int64, Int64) = (try row.value(0), try row.value(1))
        counts.created += Int(min(created, written))
        counts.replaced += Int(max(0, written - created))
        counts.unchanged += count - Int(written)
        if isFirst, written > 0 { isAudited = true }
    }
}
