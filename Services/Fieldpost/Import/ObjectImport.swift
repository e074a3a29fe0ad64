import Access
import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Writes objects in batches, one transaction each. While PostgreSQL writes a batch, the next one is made.
///
/// Interrupted at any point, it goes on when the same is imported again: what is in is compared, and left alone.
struct ObjectImport: ~Copyable {
    /// What became of the objects.
    struct Counts: Encodable {
        /// How many were not there.
        var created = 0
        /// How many were there with other fields, or were deleted.
        var replaced = 0
        /// How many were so already, or are given once more further on in the same batch.
        var unchanged = 0
    }

    private struct Waiting {
        let line: Int
        let object: ImportedObject
    }

    /// Objects that are written in one transaction, which holds the lock of the environment's counter.
    static let batchCountMax = 2_000
    /// The bytes of fields after which a batch is full as well.
    static let batchBytesMax = 2 << 20

    let environment: EnvironmentID
    /// Whether Fieldpost asks a back end for the people's choices and entries.
    let hasBackend: Bool
    /// What is imported, for the audit log.
    private let name: String
    private var connection: Connection
    private var directory = RealmDirectory()
    private var waiting: [Waiting] = []
    private var waitingBytes = 0
    /// The batch that PostgreSQL writes now.
    private var writing: (count: Int, isTold: Bool)?
    private var isTold = false
    private(set) var counts = Counts()
    private(set) var problems: ImportProblems
    /// Lines that an import may write and a device may not, with their consequence.
    private(set) var warnings: ImportProblems
    private var importedPeople: ImportedPeople

    init(
        _ name: String, in environment: EnvironmentID, hasBackend: Bool, on connection: consuming Connection,
        problemsKept: Int
    ) {
        self.name = name
        self.environment = environment
        self.hasBackend = hasBackend
        self.connection = connection
        problems = ImportProblems(keptCountMax: problemsKept)
        warnings = ImportProblems(keptCountMax: problemsKept)
        importedPeople = ImportedPeople(of: environment)
    }

    /// Takes an object, which is written with others.
    mutating func add(_ object: ImportedObject, line: Int) throws {
        waiting.append(Waiting(line: line, object: object))
        waitingBytes += object.fields.bytes.count
        if waiting.count >= Self.batchCountMax || waitingBytes >= Self.batchBytesMax { try write() }
    }

    /// Notes that a line is not imported.
    mutating func refuse(_ problem: some Error, line: Int) { problems.add(problem, at: line) }

    /// Waits until all that was taken is written.
    mutating func flush() throws {
        try write()
        try settle()
    }

    /// Writes what is left, and tells the audit log if there was anything to write.
    mutating func end() throws {
        try flush()
        guard isTold else { return }
        let detail = [
            "state": "ended", "created": "\(counts.created)", "replaced": "\(counts.replaced)",
            "unchanged": "\(counts.unchanged)", "refused": "\(problems.count)",
        ]
        try connection.run(Administrator.commandLine.audit(.objectsImported, name, in: environment, detail: detail))
    }

    /// The ids of people by their addresses. Who is not known is let in, and has the object that others name.
    mutating func people(_ wanted: [(email: String, id: UUID, name: String)]) throws -> [String: UUID] {
        try settle()
        let emails = wanted.map(\.email)
        _ = try People.claim(wanted.map { .init(id: $0.id, email: $0.email) }, in: environment, on: &connection)
        let found = try People.objects(of: emails, in: environment, on: &connection)
        let names = Dictionary(wanted.map { ($0.email, $0.name) }) { first, _ in first }
        try People.add(found.map { ($0.id, names[$0.email] ?? "") }, in: environment, on: &connection)
        return Dictionary(found.map { ($0.email, $0.id) }) { first, _ in first }
    }

    // MARK: Writing

    private mutating func write() throws {
        guard !waiting.isEmpty else { return }
        try settle()
        let objects = try known(waiting)
        waiting.removeAll(keepingCapacity: true)
        waitingBytes = 0
        guard !objects.isEmpty else { return }
        let realms = try directory.ids(
            of: Set(objects.map(\.realm)), in: environment, create: true, on: &connection)
        var batch = ImportBatch(environment: environment, capacity: objects.count)
        for object in objects {
            guard let realm = realms[object.realm] else {
                throw PostgresError(sqlState: nil, message: "the realm \(object.realm) could not be made")
            }
            batch.put(ObjectKey(realm: realm, kind: object.kind, id: object.id), object.fields)
        }
        var statements = [batch.statement]
        if !isTold {
            statements.append(
                Administrator.commandLine.audit(
                    .objectsImported, name, in: environment, detail: ["state": "begun"], decision: 0))
        }
        try connection.start(statements)
        writing = (count: objects.count, isTold: !isTold)
    }

    /// Returns the objects that pass the checks, without `Person` objects of no person; lets in people first.
    private mutating func known(_ waiting: [Waiting]) throws -> [ImportedObject] {
        let strangers = try letIn(waiting.filter { $0.object.kind == .person })
        let rest = waiting.filter { !strangers.contains($0.line) || $0.object.kind != .person }
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
    private mutating func letIn(_ people: [Waiting]) throws -> Set<Int> {
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

    /// Waits for the batch that is written.
    private mutating func settle() throws {
        guard let (count, told) = writing else { return }
        writing = nil
        let (written, created) = try connection.finish()[0][0].head()
        counts.created += min(created, written)
        counts.replaced += max(0, written - created)
        counts.unchanged += count - written
        if told, written > 0 { isTold = true }
    }
}

extension Row {
    /// The two figures that the statement of an ``ImportBatch`` answers.
    fileprivate func head() throws(PostgresError) -> (written: Int, created: Int) {
        (Int(try value(0, as: Int64.self)), Int(try value(1, as: Int64.self)))
    }
}
