import DeviceClient
import LocalCluster

/// An unlimited source of valid entries of people whose realms are filled.
struct BenchEntries: Sendable {
    private var patterns: [(person: Int, entry: PlannedEntry, choice: ReportingChoices.Choice)] = []
    private static let seconds = 1_800

    /// Reads from the realms what each person can book on.
    init(_ installation: BenchInstallation, _ organisation: Organisation) async throws {
        for (index, person) in installation.people.enumerated() {
            var copy = DeviceCopy()
            for try await line in try await installation.gateway.sync(token: installation.tokens[index]) {
                if let line = try SyncLine.read(line) { _ = copy.apply(line) }
            }
            guard let choices = ReportingChoices(copy),
                let entry = organisation.entries.first(where: {
                    $0.person == person.id && $0.expectation == .released
                }),
                let choice = choices.choice(project: entry.project, accountingCode: entry.accountingCode)
            else { continue }
            patterns.append((index, entry, choice))
        }
        guard !patterns.isEmpty else { throw ClusterFailure("no person can book on anything") }
    }

    /// Makes an entry that requests its submission.
    ///
    /// - Returns: The index of the person, and the entry's fields.
    func make(_ number: Int) throws -> (person: Int, fields: [UInt8]) {
        let (person, entry, choice) = patterns[number % patterns.count]
        let fields = try Author.draft(
            entry, choice, text: "Entry \(number)", seconds: Self.seconds, isSubmitted: true)
        return (person, fields)
    }
}
