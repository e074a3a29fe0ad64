import Testing

/// The properties that the simulation verifies, in the order of the list in `DeviceSimulationTests`.
enum Law: Int {
    case consistentCheckpoints = 1
    case nothingInBetween
    case ownChangesAreShown
    case processedOnce
    case resultsReported
    case shownWhenIdle
    case becomesIdle
    case storedStateRoundTrips
}

/// A violated property, with details.
struct Violation: Error, CustomStringConvertible {
    /// `nil`: the simulation itself failed.
    let law: Law?
    let description: String

    init(_ law: Law?, _ description: String) {
        self.law = law
        self.description = description
    }
}

/// Faults that the simulation injects into a device; it must detect each of them.
///
/// ``SimulatedDevice`` injects most of them between the simulation and the library: it alters the library's inputs and
/// outputs to those of a library with that fault.
enum Mistake: String, CaseIterable {
    // The copy.
    case showsAtOnce = "Objects are shown before their checkpoint"
    case showsHalf = "A checkpoint is applied without the last objects before it"
    case losesALine = "A line with objects is lost and the stream continues"
    case keepsTombstones = "Tombstones are ignored"
    case keepsOlder = "Of two versions of an object before a checkpoint, the first is stored"
    case keepsContentOnReset = "A reset does not remove the stored objects"
    case keepsStagedOnReset = "A reset does not remove the objects received since the last checkpoint"
    case keepsClosed = "A closed realm is not removed"
    case keepsCursorOfClosed = "A closed realm's cursor is sent when the realm is reopened"
    case keepsCursorOnKill = "Cursors are stored immediately, but the copy is not"
    case keepsUnnamed = "Realms that are absent from the request and not opened by the server are not removed"
    // The queue.
    case numbersAgain = "A resent mutation gets a new number"
    case losesOrder = "The first two mutations of a request are exchanged"
    case losesLastResult = "The last result of a request is lost"
    case losesRejections = "A rejection is treated as an acceptance"
    case miscountsGap = "The expected number of a gap is treated as the last processed one"
    case takesGapForClone = "The expected number of a gap is treated as another device's"
    case omitsQuery = "The last result is not queried after a realm was reset"
    case ignoresQueryResult = "The queried last result is ignored"
    case storesLate = "A request is sent before the state is stored"
    // The shown content.
    case showsCopy = "The copy is shown without the mutations in flight"
    case dropsCompleted = "A mutation is shown only until its result, not until its checkpoint"
    case dropsAllOnRejection = "After a rejection, the other mutations in flight of the same object are not shown"
    case showsRejected = "A rejected mutation is still shown"
    case showsForever = "An accepted mutation is still shown after its checkpoint"

    /// The properties whose check may detect the fault first.
    var laws: Set<Law> {
        switch self {
        case .showsAtOnce: [.nothingInBetween]
        case .keepsClosed, .keepsUnnamed: [.consistentCheckpoints, .nothingInBetween, .shownWhenIdle]
        case .showsHalf, .losesALine, .keepsTombstones, .keepsOlder, .keepsContentOnReset, .keepsStagedOnReset,
            .keepsCursorOfClosed, .keepsCursorOnKill:
            [.consistentCheckpoints]
        case .numbersAgain, .losesOrder, .storesLate: [.ownChangesAreShown, .processedOnce, .resultsReported]
        case .takesGapForClone: [.processedOnce]
        case .omitsQuery: [.processedOnce, .shownWhenIdle]
        case .losesRejections: [.ownChangesAreShown, .resultsReported]
        case .ignoresQueryResult: [.resultsReported]
        case .losesLastResult, .miscountsGap: [.becomesIdle]
        case .showsCopy, .dropsCompleted, .dropsAllOnRejection: [.ownChangesAreShown]
        case .showsRejected, .showsForever: [.ownChangesAreShown, .shownWhenIdle]
        }
    }
}

extension Mistake: CustomTestStringConvertible {
    var testDescription: String { rawValue }
}
