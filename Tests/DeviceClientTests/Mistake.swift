import Testing

/// What the simulation looks at, in the order in which `DeviceSimulationTests` lists it.
enum Law: Int {
    case wholeCheckpoints = 1
    case nothingInBetween
    case ownIsShown
    case decidedOnce
    case told
    case shownAtRest
    case comesToRest
    case readAsStored
}

/// What does not hold, and where.
struct Violation: Error, CustomStringConvertible {
    /// `nil`: the simulation itself failed.
    let law: Law?
    let description: String

    init(_ law: Law?, _ description: String) {
        self.law = law
        self.description = description
    }
}

/// The mistakes that a device may make on purpose: the simulation must find each of them.
///
/// Most are made by ``SimulatedDevice`` between the simulation and the library: of what the library is told and says,
/// it makes what a library with that mistake would.
enum Mistake: String, CaseIterable {
    // The copy.
    case showsAtOnce = "Objects are shown as they arrive"
    case showsHalf = "A checkpoint is shown without the objects that came last before it"
    case losesALine = "A list of objects is lost, and the stream read on"
    case keepsTombstones = "Tombstones are passed over"
    case keepsOlder = "An object that comes twice before a checkpoint stays as it came first"
    case keepsContentOnReset = "A reset leaves what was held"
    case keepsStagedOnReset = "A reset leaves what has arrived since the checkpoint before it"
    case keepsClosed = "A closed realm stays"
    case keepsCursorOfClosed = "A closed realm's cursor is named when it may be opened again"
    case keepsCursorOnKill = "Cursors are stored as they come, and the copy is not"
    case keepsUnnamed = "What a request does not name, and nobody opens, stays"
    // The queue.
    case numbersAgain = "What is sent again gets a new number"
    case losesOrder = "The first two mutations of a request are exchanged"
    case losesLastAnswer = "A request's last answer is not heard"
    case losesRejections = "A rejection is taken for an acceptance"
    case miscountsGap = "The number of a gap is taken for the last one that was decided"
    case takesGapForClone = "The number of a gap is taken for somebody else's"
    case asksNothing = "The last answer is not asked for when a realm is given anew"
    case doesNotHearAgain = "The last answer is asked for, and stays what it was"
    case storesLate = "A request is sent before the state it was made of is stored"
    // What is shown.
    case showsCopy = "The copy is shown without what is on its way"
    case dropsAnswered = "A mutation is shown until its answer, and not until its checkpoint"
    case dropsAllOnRejection = "After a rejection its object is shown without what else is on its way"
    case showsRejected = "A rejected mutation is still shown"
    case showsForever = "An accepted mutation is still shown after its checkpoint"

    /// What finds it first.
    var laws: Set<Law> {
        switch self {
        case .showsAtOnce: [.nothingInBetween]
        case .keepsClosed, .keepsUnnamed: [.wholeCheckpoints, .nothingInBetween, .shownAtRest]
        case .showsHalf, .losesALine, .keepsTombstones, .keepsOlder, .keepsContentOnReset, .keepsStagedOnReset,
            .keepsCursorOfClosed, .keepsCursorOnKill:
            [.wholeCheckpoints]
        case .numbersAgain, .losesOrder, .storesLate: [.ownIsShown, .decidedOnce, .told]
        case .takesGapForClone: [.decidedOnce]
        case .asksNothing: [.decidedOnce, .shownAtRest]
        case .losesRejections: [.ownIsShown, .told]
        case .doesNotHearAgain: [.told]
        case .losesLastAnswer, .miscountsGap: [.comesToRest]
        case .showsCopy, .dropsAnswered, .dropsAllOnRejection: [.ownIsShown]
        case .showsRejected, .showsForever: [.ownIsShown, .shownAtRest]
        }
    }
}

extension Mistake: CustomTestStringConvertible {
    var testDescription: String { rawValue }
}
