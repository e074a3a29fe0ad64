import Essentials
import FoundationEssentials
import Model

/// The plan of a device's entry, with its expected result.
struct PlannedEntry: Sendable {
    enum Fate: Sendable { case kept, edited, deleted }

    let id: UUID
    let person: SmallOrganisation.Person
    let fate: Fate
    let first: TimeEntry
    /// The value after the edit.
    let second: TimeEntry

    /// The expected record; `nil`: none.
    var expected: TimeEntry? {
        switch fate {
        case .kept: first
        case .edited: second
        case .deleted: nil
        }
    }
}

/// The choices of people, from their realms.
struct Choices: Sendable {
    let template: UUID
    /// A customer, project and accounting code that go together, and the code's number in the back end.
    let selections: [(reporting: [ReportingSelection], element: String)]
}

extension SmallOrganisation {
    /// - Parameter choices: By e-mail.
    func plan(_ count: Int, choices: [String: Choices], seed: UInt64) -> [PlannedEntry] {
        var random = SplitMix64(seed: seed)
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
