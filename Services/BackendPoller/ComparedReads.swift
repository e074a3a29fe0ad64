import FoundationEssentials
import Model

/// What was read of people and found to be as it is stored: what is read again the same, while nobody has changed
/// anything, needs no comparison.
///
/// It is kept in memory by the worker: after a start, everybody is compared once more.
struct ComparedReads {
    /// People remembered; then all are forgotten.
    static let countMax = 100_000

    /// A poll has its id from the person alone.
    struct Name: Hashable {
        let environment: EnvironmentID
        let poll: UUID
    }

    private var known: [Name: (hash: Int, position: Int64)] = [:]

    /// Where everything of a person was when the same was read.
    func position(of poll: Name, _ hash: Int) -> Int64? {
        known[poll].flatMap { $0.hash == hash ? $0.position : nil }
    }

    /// What was changed meanwhile is not known.
    mutating func forget(_ environment: EnvironmentID) {
        known = known.filter { $0.key.environment != environment }
    }

    mutating func remember(_ poll: Name, _ hash: Int, at position: Int64) {
        if known.count >= Self.countMax { known = [:] }
        known[poll] = (hash, position)
    }
}
