public import Essentials
public import FoundationEssentials
import Model

/// A person as a back end knows them.
public struct BackendPerson: Codable, Equatable, Hashable, Sendable {
    /// The e-mail address, lower case: who it is in Fieldpost.
    public var email: String
    /// What the back end calls the person; the adapter says which names it needs.
    public var reference: [String: String]

    /// A person with their references.
    public init(email: String, reference: [String: String]) {
        self.email = email
        self.reference = reference
    }
}

/// Somebody whom a back end knows: a proposal, until an administrator says that the address is theirs.
public struct BackendPersonProposal: Equatable, Sendable {
    /// The e-mail address as the back end has it; `nil` without one.
    public var email: String?
    /// What the back end calls them, for whoever confirms.
    public var name: String
    /// As ``BackendPerson/reference``.
    public var reference: [String: String]
    /// Whether the back end takes no time of theirs.
    public var isBarred: Bool

    /// A proposal.
    public init(email: String?, name: String, reference: [String: String], isBarred: Bool = false) {
        self.email = email
        self.name = name
        self.reference = reference
        self.isBarred = isBarred
    }
}

/// A time entry as it is to stand in the back end.
public struct Submission: Equatable, Sendable {
    /// Identifies the entry in the back end; see ``EntryMarker``.
    public var marker: String
    /// Whose time it is.
    public var person: BackendPerson
    /// The day the time is registered on.
    public var day: Day
    /// The length in seconds.
    public var durationSeconds: Int
    /// What the person wrote.
    public var text: String?
    /// The chosen nodes: context name → the node's `referenceId`.
    public var references: [String: String]
    /// Until when it may be sent.
    public var before: WriteDeadline

    /// A submission.
    public init(
        marker: String, person: BackendPerson, day: Day, durationSeconds: Int, text: String?,
        references: [String: String], before: WriteDeadline = .never
    ) {
        self.marker = marker
        self.person = person
        self.day = day
        self.durationSeconds = durationSeconds
        self.text = text
        self.references = references
        self.before = before
    }
}

/// Until when a write may be sent.
///
/// Whoever asks for a write has the record for themselves for a while (a lease). A process that stood still, such as
/// one that was stopped or swapped out, must not write when that is over: somebody else may have looked for the record,
/// not found it, and written it. So it is compared with the clock right before each request that writes, the last thing
/// before it is sent.
public struct WriteDeadline: Equatable, Sendable {
    /// `nil`: there is no such time.
    public let instant: ContinuousClock.Instant?

    /// Writes may be sent before `instant`.
    public init(_ instant: ContinuousClock.Instant) { self.instant = instant }

    private init() { instant = nil }

    /// No deadline: for a caller that nobody takes turns with.
    public static let never = WriteDeadline()

    /// Whether it is too late to send a write.
    public var hasPassed: Bool { instant.map { ContinuousClock.now >= $0 } ?? false }

    /// - Throws: ``BackendError/tooLate`` when it has passed.
    public func check() throws(BackendError) {
        if hasPassed { throw .tooLate }
    }
}

/// What a record has become in the back end.
public enum BackendStatus: String, Codable, CaseIterable, Sendable {
    /// Saved, not released.
    case inProcess
    /// Waiting for approval.
    case released
    /// Approved.
    case approved
    /// Refused by an approver.
    case rejected
    /// Posted; closed for editing.
    case recorded
    /// An approved record that was changed: its successor counts.
    case changed
    /// Deleted, or replaced by an approved successor.
    case cancelled
}

/// A record of the back end.
public struct BackendEntry: Hashable, Sendable {
    /// The back end's id of the record.
    public var id: String
    /// The marker it carries, when it came from Fieldpost.
    public var marker: String?
    /// The day the time is registered on.
    public var day: Day
    /// The length in seconds, as far as the back end keeps it.
    public var durationSeconds: Int
    /// The text without the marker.
    public var text: String?
    /// What has become of it.
    public var status: BackendStatus
    /// Context name → `referenceId` of the node, as far as the record tells.
    public var references: [String: String]
    /// What the back end says about it, for a person: a reason of rejection, for one.
    public var message: String?
    /// Tells the record's states apart, in back ends that have such a thing, for one the time of the last change: with
    /// another version the record counts as changed, even when all else is the same. Versions need no order, and the
    /// same one does not say that nothing has changed: the back end's clock may be coarse.
    public var version: String?

    /// A record.
    public init(
        id: String, marker: String?, day: Day, durationSeconds: Int, text: String?, status: BackendStatus,
        references: [String: String], message: String? = nil, version: String? = nil
    ) {
        self.id = id
        self.marker = marker
        self.day = day
        self.durationSeconds = durationSeconds
        self.text = text
        self.status = status
        self.references = references
        self.message = message
        self.version = version
    }
}

/// Finds a record again whose back end has no field for a foreign key: `#`, the entry's id in 22 characters of
/// base64url, `#`, at the end of the note.
public enum EntryMarker {
    /// Characters of a marker.
    public static let length = 24

    /// The marker of an entry.
    public static func marker(of entry: UUID) -> String {
        let bytes = unsafe withUnsafeBytes(of: entry.uuid) { unsafe Data($0) }
        return "#" + Base64URL.text(bytes) + "#"
    }

    /// The note of a record: the text, a space, the marker.
    public static func note(text: String?, marker: String) -> String {
        guard let text, !text.isEmpty else { return marker }
        return text + " " + marker
    }

    /// Takes a note apart. Without a marker at its end, all of it is text.
    ///
    /// Bytes are compared: what stands before the marker may be one that joins the next character (U+0600).
    public static func split(note: String) -> (text: String?, marker: String?) {
        let marker = note.utf8.suffix(length)
        guard marker.count == length, marker.first == UInt8(ascii: "#"), marker.last == UInt8(ascii: "#"),
            marker.dropFirst().dropLast().allSatisfy(Base64URL.contains)
        else { return (note.isEmpty ? nil : note, nil) }
        var text = note.utf8.dropLast(length)
        if text.last == UInt8(ascii: " ") { text.removeLast() }
        return (text.isEmpty ? nil : String(Substring(text)), String(Substring(marker)))
    }

    /// The entry that a marker names; `nil` when it is none.
    public static func entry(of marker: String) -> UUID? {
        guard marker.utf8.count == length else { return nil }
        guard let bytes = Base64URL.bytes(marker.dropFirst().dropLast().utf8), bytes.count == 16 else { return nil }
        let id = unsafe bytes.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
        // 22 characters have four bits more than an id: one that sets them is no marker of ours.
        return self.marker(of: id) == marker ? id : nil
    }
}
