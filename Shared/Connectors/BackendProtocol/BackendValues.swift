public import Essentials
public import FoundationEssentials
import Model

/// A person's identity in Fieldpost and in a back end.
public struct BackendPerson: Codable, Equatable, Hashable, Sendable {
    /// The e-mail address in lower case: the person's identity in Fieldpost.
    public var email: String
    /// The person's identifiers in the back end. The adapter defines their names.
    public var reference: [String: String]

    /// Creates a person with the back end's identifiers.
    public init(email: String, reference: [String: String]) {
        self.email = email
        self.reference = reference
    }
}

/// A person in the back end: a proposal until an administrator confirms the e-mail address.
public struct BackendPersonProposal: Equatable, Sendable {
    /// The e-mail address as stored in the back end; `nil` if there is none.
    public var email: String?
    /// The person's name in the back end, displayed to the administrator who confirms the proposal.
    public var name: String
    /// Identifiers as in ``BackendPerson/reference``.
    public var reference: [String: String]
    /// Whether the back end refuses time entries of this person.
    public var isBarred: Bool

    /// Creates a proposal.
    public init(email: String?, name: String, reference: [String: String], isBarred: Bool = false) {
        self.email = email
        self.name = name
        self.reference = reference
        self.isBarred = isBarred
    }
}

/// The desired state of a time entry's record in the back end.
public struct Submission: Equatable, Sendable {
    /// Identifies the entry in the back end, at most one live record each; see ``EntryMarker``.
    public var marker: String
    /// The owner of the record.
    public var person: BackendPerson
    /// The day the time is registered on.
    public var day: Day
    /// The duration in seconds.
    public var durationSeconds: Int
    /// The person's text, without the marker.
    public var text: String?
    /// The selected nodes: `referenceId` by context name.
    public var references: [String: String]
    /// The deadline for sending the write.
    public var before: WriteDeadline

    /// Creates a submission.
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

/// The time after which a write must not be sent.
///
/// The caller of a write owns the record exclusively for a limited time (a lease). If its process is suspended or
/// swapped out beyond that time, another caller may have looked up the record, found nothing, and created it. An
/// adapter therefore calls ``check()`` immediately before it sends each request that writes.
public struct WriteDeadline: Equatable, Sendable {
    /// The deadline; `nil` if there is none.
    public let instant: ContinuousClock.Instant?

    /// Creates a deadline: writes may be sent before `instant`.
    public init(_ instant: ContinuousClock.Instant) { self.instant = instant }

    private init() { instant = nil }

    /// No deadline, for a caller without concurrent callers.
    public static let never = WriteDeadline()

    /// Whether writes must no longer be sent.
    public var hasPassed: Bool { instant.map { ContinuousClock.now >= $0 } ?? false }

    /// Verifies that the deadline has not passed.
    ///
    /// - Throws: ``BackendError/deadlineExceeded`` if it has.
    public func check() throws(BackendError) {
        if hasPassed { throw .deadlineExceeded }
    }
}

/// The status of a record in the back end.
public enum BackendStatus: String, Codable, CaseIterable, Sendable {
    /// Saved, not released.
    case inProcess
    /// Waiting for approval.
    case released
    /// Approved.
    case approved
    /// Rejected by an approver.
    case rejected
    /// Posted; closed for editing.
    case recorded
    /// An approved record that was changed: its successor is the current one.
    case changed
    /// Deleted, or replaced by an approved successor.
    case cancelled
}

/// A record as stored in the back end.
public struct BackendEntry: Hashable, Sendable {
    /// The back end's identifier of the record.
    public var id: String
    /// The marker, if the record was created by Fieldpost.
    public var marker: String?
    /// The day the time is registered on.
    public var day: Day
    /// The duration in seconds, rounded as the back end stores it.
    public var durationSeconds: Int
    /// The text without the marker.
    public var text: String?
    /// The status of the record.
    public var status: BackendStatus
    /// The selected nodes that the record refers to: `referenceId` by context name.
    public var references: [String: String]
    /// The back end's message about the record for the person, such as the reason of a rejection.
    public var message: String?
    /// Distinguishes states of the record, if the back end has something suitable, such as the time of the last change.
    ///
    /// With a different version the record counts as changed, even if all other fields are equal. Versions have no
    /// order. An equal version does not prove that nothing has changed, because the back end's clock may be coarse.
    public var version: String?

    /// Creates a record.
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

/// The identifier of an entry at the end of its record's note, for back ends without a field for a foreign key: `#`,
/// the entry's id in 22 characters of base64url, `#`.
public enum EntryMarker {
    /// Length of a marker in characters.
    public static let length = 24

    /// Returns the marker of an entry.
    public static func marker(of entry: UUID) -> String {
        let bytes = unsafe withUnsafeBytes(of: entry.uuid) { unsafe Data($0) }
        return "#" + Base64URL.text(bytes) + "#"
    }

    /// Returns the note of a record: the text, a space, the marker.
    public static func note(text: String?, marker: String) -> String {
        guard let text, !text.isEmpty else { return marker }
        return text + " " + marker
    }

    /// Splits a note into text and marker. A note without a marker at its end is text only.
    ///
    /// Bytes are compared, not characters: the text may end with a scalar that joins the next character (U+0600).
    public static func split(note: String) -> (text: String?, marker: String?) {
        let marker = note.utf8.suffix(length)
        guard marker.count == length, marker.first == UInt8(ascii: "#"), marker.last == UInt8(ascii: "#"),
            marker.dropFirst().dropLast().allSatisfy(Base64URL.contains)
        else { return (note.isEmpty ? nil : note, nil) }
        var text = note.utf8.dropLast(length)
        if text.last == UInt8(ascii: " ") { text.removeLast() }
        return (text.isEmpty ? nil : String(Substring(text)), String(Substring(marker)))
    }

    /// Returns the entry that a marker identifies; `nil` for any other text.
    public static func entry(of marker: String) -> UUID? {
        guard marker.utf8.count == length else { return nil }
        guard let bytes = Base64URL.bytes(marker.dropFirst().dropLast().utf8), bytes.count == 16 else { return nil }
        let id = unsafe bytes.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
        // 22 characters have four bits more than an id: a marker that sets them was not created here.
        return self.marker(of: id) == marker ? id : nil
    }
}
