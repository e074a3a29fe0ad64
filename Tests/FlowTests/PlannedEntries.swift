import FoundationEssentials
import Model

/// What a device will do with an entry, and what is to be there at the end.
struct PlannedEntry: Sendable {
    enum Fate: Sendable { case kept, edited, deleted }

    let id: UUID
    let person: SmallOrganisation.Person
    let fate: Fate
    let first: TimeEntry
    /// What it is edited to.
    let second: TimeEntry

    /// What the back end is to hold; `nil`: nothing.
    var wanted: TimeEntry? {
        switch fate {
        case .kept: first
        case .edited: second
        case .deleted: nil
        }
    }
}

/// Who may report on what, as a realm says it.
struct Choices: Sendable {
    let template: UUID
    /// A customer, project and accounting code that go together, and the code's number in the back end.
    let selections: [(reporting: [ReportingSelection], element: String)]
}

/// Splitmix64: the same seed gives the same run.
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension SmallOrganisation {
    /// - Parameter choices: By e-mail.
    func plan(_ count: Int, choices: [String: Choices], seed: UInt64) -> [PlannedEntry] {
        var random = SeededNumbers(seed: seed)
        return (0..<count).compactMap { index in
            let person = people[index % people.count]
            guard let theirs = choices[person.email],
                let selection = theirs.selections.randomElement(using: &random),
                let day = Day("2015-03-\(10 + Int.random(in: 0..<15, using: &random))")
            else { return nil }
            let first = TimeEntry(
                text: "work \(index)", reportingTemplate: theirs.template, reporting: selection.reporting,
                entryDate: day, durationSeconds: 900 * Int.random(in: 1...32, using: &random), submitRequested: true)
            var second = first
            second.text = "work \(index), better"
            second.durationSeconds = 900 * Int.random(in: 1...32, using: &random)
            let fate: PlannedEntry.Fate =
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<6: .kept
                case 6..<8: .edited
                default: .deleted
                }
            return PlannedEntry(id: UUID(), person: person, fate: fate, first: first, second: second)
        }
    }
}
