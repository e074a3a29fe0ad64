import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// Entries that the back end will take, of people whose realms are filled, as often as they are wanted.
struct BenchEntries: Sendable {
    private let patterns: [(person: Int, entry: PlannedEntry, choice: ReportingChoices.Choice)]
    private static let seconds = 1_800

    /// Reads from their realms what the people may choose.
    init(_ bench: BenchCluster, _ organisation: Organisation) async throws {
        var patterns: [(Int, PlannedEntry, ReportingChoices.Choice)] = []
        for (index, person) in bench.people.enumerated() {
            var copy = DeviceCopy()
            for try await line in try await bench.gateway.sync(
                token: bench.tokens[index], body: GatewayClient.firstSyncBody(isLive: false))
            {
                if let line = try SyncLine.read(line) { _ = copy.apply(line) }
            }
            guard let choices = ReportingChoices(copy),
                let entry = organisation.entries.first(where: { $0.person == person.id && $0.expectation == .released }
                ),
                let choice = choices.choice(project: entry.project, accountingCode: entry.accountingCode)
            else { continue }
            patterns.append((index, entry, choice))
        }
        guard !patterns.isEmpty else { throw BenchPlace.Missing(description: "nobody has anything to report on") }
        self.patterns = patterns
    }

    /// A new entry that asks for its submission.
    ///
    /// - Returns: The index of its person, and its fields.
    func make(_ number: Int) throws -> (person: Int, fields: [UInt8]) {
        let (person, entry, choice) = patterns[number % patterns.count]
        let fields = try Author.draft(
            entry, choice, text: "Entry \(number)", seconds: Self.seconds, isSubmitted: true)
        return (person, fields)
    }
}
