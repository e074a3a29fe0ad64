import Essentials
import FoundationEssentials
import Model

/// The plan of an entry in the demo.
enum EntryVariant: CaseIterable, Sendable {
    /// Draft, then submit.
    case plain
    /// Drafted with the wish to be submitted.
    case submittedAtOnce
    /// Drafted wrong, corrected, submitted.
    case correctedBefore
    /// Submitted, and after its release the text is changed.
    case editedAfter
    /// A mistake that is deleted as a draft.
    case deletedBefore
    /// A mistake that is noticed after its release, and deleted.
    case deletedAfter

    /// Whether the entry must be deleted without a trace.
    var isMistake: Bool { self == .deletedBefore || self == .deletedAfter }
}

/// The data of an entry before it is drafted, and its expected end.
struct EntryPlan: Equatable, Sendable {
    let entry: PlannedEntry
    /// The object's id; a mistake has one of its own.
    let id: UUID
    let variant: EntryVariant

    /// Per thousand of the entries that are to be released.
    static let submittedAtOnceShare = 200
    static let correctedBeforeShare = 100
    static let editedAfterShare = 50
    static let deletedBeforeShare = 30
    static let deletedAfterShare = 20

    /// The plan for an entry, and for the mistakes made on its occasion; the same in every run.
    static func plans(for entry: PlannedEntry) -> [EntryPlan] {
        let isToBeReleased = entry.expectation == .released
        let share = draw("variant", entry)
        let variant: EntryVariant =
            if share < correctedBeforeShare {
                .correctedBefore
            } else if share < correctedBeforeShare + editedAfterShare {
                isToBeReleased ? .editedAfter : .plain
            } else if share < correctedBeforeShare + editedAfterShare + submittedAtOnceShare {
                .submittedAtOnce
            } else {
                .plain
            }
        var plans = [EntryPlan(entry: entry, id: entry.id, variant: variant)]
        let mistake = draw("mistake", entry)
        if isToBeReleased && mistake < deletedBeforeShare {
            plans.append(EntryPlan(entry: entry, id: extraID("deleted-before", entry), variant: .deletedBefore))
        } else if isToBeReleased && mistake < deletedBeforeShare + deletedAfterShare {
            plans.append(EntryPlan(entry: entry, id: extraID("deleted-after", entry), variant: .deletedAfter))
        }
        return plans
    }

    private static func extraID(_ purpose: String, _ entry: PlannedEntry) -> UUID {
        StableID.uuid(purpose, entry.id.text)
    }

    /// A number from 0 to 999 that is always the same for the entry.
    private static func draw(_ purpose: String, _ entry: PlannedEntry) -> Int {
        let bytes = StableID.uuid(purpose, entry.id.text).uuid
        return ((Int(bytes.14) << 8 | Int(bytes.15)) * 1000) >> 16
    }

    /// The final text.
    var text: String { variant == .editedAfter ? Self.text("Edited: ", entry) : entry.text }

    /// The text of the first draft.
    var draftText: String { variant == .correctedBefore ? Self.text("Wrong: ", entry) : entry.text }

    /// The duration in the first draft; a correction also removes an excess quarter of an hour.
    var draftSeconds: Int { entry.durationSeconds + (variant == .correctedBefore ? 900 : 0) }

    private static func text(_ prefix: String, _ entry: PlannedEntry) -> String {
        String((prefix + entry.text).prefix(TimeEntry.submittedTextLengthMax))
    }
}
