import ArgumentParser
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import ObjectStore
import Postgres

/// `share-fan-out`, compared with PostgreSQL that writes the same copies.
struct BenchSharing: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "sharing",
        abstract: "Compare share-fan-out with writing the same copies alone.",
        discussion: """
            Each appointment has 100 recipients. All appointments are changed and published; the service writes the \
            recipients' copies. The first fifth of the copies does not count. PostgreSQL alone writes the copies of \
            one appointment per transaction.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of appointments; all of them change in each run.") var appointments = 100

    func validate() throws { try BenchOptions.check(appointments, in: 10...10_000, "--appointments") }

    static let targets = [
        BenchTarget(
            name: "share-fan-out / PostgreSQL alone", figure: "share-fan-out", reference: "PostgreSQL alone",
            limit: .atLeast(0.6))
    ]

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration() }

    func setUp(_ installation: BenchInstallation) async throws -> BenchShares {
        let shares = try BenchShares(installation, count: appointments)
        let process = try installation.start(Services.shareFanOut)
        defer { if process.terminate(within: .seconds(20)) == nil { process.kill9() } }
        try shares.publishLinks()
        try await waitUntil("all copies", within: .seconds(300), interval: .milliseconds(200)) {
            guard process.isRunning else { throw ClusterFailure(process.logTail()) }
            return try await shares.copyCount(on: installation.pool) >= shares.copyCount
        }
        return shares
    }

    func measure(
        _ shares: BenchShares, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        report.add("PostgreSQL alone", "rows/s", try shares.copyAlone())
        try shares.change()
        let rate = try await BenchRate.measure(
            Services.shareFanOut, count: shares.copyCount, shares.writer, on: installation)
        report.add("share-fan-out", "rows/s", rate.perSecond)
        rate.addProcessorTimes(to: &report, per: "row")
    }
}

/// Appointments of different owners, each shared with 100 people.
final class BenchShares {
    private struct Owner {
        let appointment: UUID
        let path: RealmPath
        let realm: Int32
        let shares: [UUID]

        var source: BenchWriter.Source {
            BenchWriter.Source(path: path, key: ObjectKey(realm: realm, kind: .appointment, id: appointment))
        }
    }

    let writer: BenchWriter
    private var owners: [Owner] = []
    private var links: [BenchWriter.Source] = []
    /// Number of changes so far; part of each appointment.
    private var revision = 0

    private static let recipientCount = 100

    init(_ installation: BenchInstallation, count: Int) throws {
        writer = try BenchWriter(installation)
        var random = SplitMix64(seed: 1)
        let emails = (0..<count + Self.recipientCount).map { "p\($0)@bench.example" }
        let people = try writer.register(emails)
        let realms = try writer.realms(emails.map { try .user($0) })
        let recipients = people.suffix(Self.recipientCount)
        var objects: [(key: ObjectKey, fields: String)] = []
        for (email, person) in zip(emails, people).prefix(count) {
            let path = try RealmPath.user(email)
            let owner = Owner(
                appointment: random.id(), path: path, realm: realms[path] ?? 0,
                shares: recipients.map { Share.id(of: person, with: $0) })
            owners.append(owner)
            for recipient in recipients {
                let id = SharedItem.id(of: owner.appointment, with: recipient)
                let link = BenchWriter.Source(
                    path: path, key: ObjectKey(realm: owner.realm, kind: .sharedItem, id: id))
                links.append(link)
                let item = "\"kind\":\"Appointment\",\"item\":\"\(owner.appointment.text)\""
                objects.append((link.key, "{\(item),\"recipient\":\"\(recipient.text)\"}"))
            }
        }
        try writer.begin(Services.shareFanOut)
        try writer.write(owners.map { ($0.source.key, fields()) } + objects)
    }

    /// Number of copies of all appointments.
    var copyCount: Int { owners.count * Self.recipientCount }

    private func fields() -> String {
        #"{"when":"2018-01-03T08:00:00.000Z","durationMinutes":30,"why":"Inspection \#(revision)"}"#
    }

    /// Publishes the appointments and the links to their recipients.
    func publishLinks() throws { try writer.publish(owners.map(\.source) + links, to: Topics.share) }

    /// Number of existing copies.
    func copyCount(on pool: Pool) async throws -> Int {
        try await pool.number(
            """
            SELECT count(*) FROM store.object
            WHERE kind = \(Kind.appointment) AND realm_id <> ALL (\(owners.map(\.realm))) AND NOT deleted
            """)
    }

    /// Changes and publishes every appointment.
    func change() throws {
        revision += 1
        try writer.write(owners.map { ($0.source.key, fields()) })
        try writer.publish(owners.map(\.source), to: Topics.share)
    }

    /// Measures the writes of every copy, which are prepared before.
    ///
    /// - Returns: Rows per second.
    func copyAlone() throws -> Double {
        revision += 1
        let fields = try CanonicalJSON(fields())
        var pipelines: [[Statement]] = []
        for owner in owners {
            let realms = try writer.realms(owner.shares.map { .share($0) })
            var batch = WriteBatch(environment: writer.environment)
            for realm in realms.values {
                batch.put(ObjectKey(realm: realm, kind: .appointment, id: owner.appointment), fields, decision: 0)
            }
            pipelines.append(batch.pipeline)
        }
        return try writer.rate(of: pipelines, count: copyCount)
    }
}
