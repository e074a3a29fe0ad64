/// The type of an object. The raw value is the kind's name in events and the device API; PostgreSQL stores its
/// `number`.
public enum Kind: RawRepresentable, Codable, CaseIterable, Hashable, Sendable {
    /// A user's realm and its initialization state; fields: ``RealmRegistration`` (the type), in the realm `/users`.
    case realms
    /// The owner of a personal realm; fields: ``User`` (the type).
    case user
    /// A node of a reporting tree, in a catalogue; fields: ``ReportingTreeNode`` (the type).
    case reportingTreeNode
    /// A choice that an entry's author makes; fields: ``ReportingContext`` (the type).
    case reportingContext
    /// The contexts that an entry of one type needs; fields: ``ReportingTemplate`` (the type).
    case reportingTemplate
    /// Registered time; fields: ``TimeEntry`` (the type).
    case timeEntry
    /// A line of an entry's status log; fields: ``TimeEntryStatus`` (the type).
    case timeEntryStatus
    /// A person's public data, in `/common`; fields: ``Person`` (the type).
    case person
    /// A person's search entry, in `/common`; fields: ``PersonLookup`` (the type).
    case personLookup
    /// A team, in `/common`; fields: ``Team`` (the type).
    case team
    /// A person's membership in a team, in `/common`; fields: ``Membership`` (the type).
    case membership
    /// A person's last location; fields: ``Location`` (the type).
    case location
    /// A task; fields: ``FieldTask`` (the type).
    case fieldTask
    /// A note about a task; fields: ``TaskNote`` (the type).
    case taskNote
    /// A relation in which one person shares items with another; fields: ``Share`` (the type).
    case share
    /// A calendar event of a person; fields: ``Appointment`` (the type).
    case appointment
    /// A person's note; fields: ``Note`` (the type).
    case note
    /// An item that a person shares with another; fields: ``SharedItem`` (the type).
    case sharedItem
    /// The content of an object that was deleted from a personal realm; fields: ``DeletedObject`` (the type).
    case deletedObject
    /// An item that is no longer shared with a person; fields: ``EndedShare`` (the type).
    case endedShare
    /// A person's data that no other person reads; fields: ``PrivateProfile`` (the type).
    case privateProfile
    /// A notification for a person; fields: ``Notice`` (the type).
    case notice
    /// A defect that is assigned to a person or was reported by them; fields: ``Defect`` (the type).
    case defect
    /// A change or a read of a defect that a person requests; fields: ``DefectCommand`` (the type).
    case defectCommand
    /// A person's own login in the defect tracker; fields: ``DefectAccount`` (the type).
    case defectAccount
    /// A request to read the defect tracker, in `/polls`; fields: ``DefectPoll`` (the type).
    case defectPoll
    /// A person's choice of channels for notices; fields: ``DeliveryChoice`` (the type).
    case deliveryChoice
    /// A request to read a person's records from the back end, in `/polls`; fields: ``Poll`` (the type).
    case poll
    /// The back end's record of an entry as last polled; fields: ``SeenRecord`` (the type).
    case seenRecord
    /// The number of the last write checkpoint of a client of the PowerSync protocol; fields: ``WriteCheckpoint`` (the
    /// type).
    case writeCheckpoint
    /// A kind that an environment declares.
    case own(OwnKind)

    /// The built-in kinds.
    public static let allCases: [Kind] = [
        .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
        .person, .personLookup, .team, .membership, .location, .fieldTask, .taskNote, .share, .appointment, .note,
        .sharedItem, .deletedObject, .endedShare, .privateProfile, .notice, .defect, .defectCommand, .defectAccount,
        .defectPoll, .deliveryChoice, .poll, .seenRecord, .writeCheckpoint,
    ]
}

extension Kind {
    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

    /// - Returns: `nil` if there is no built-in kind of this name.
    public init?(rawValue: String) {
        guard let kind = Self.byName[rawValue] else { return nil }
        self = kind
    }

    /// Returns the kind of a name: a built-in one, or one that an environment may declare. For apps.
    ///
    /// - Returns: `nil` if the process has used 32,768 names of kinds.
    public init?(named name: String) {
        guard let kind = Self.byName[name] ?? OwnKind.named(name).map(Kind.own) else { return nil }
        self = kind
    }

    /// Decodes a name as ``init(named:)`` does.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let kind = Kind(named: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "there are too many kinds")
        }
        self = kind
    }

    /// The kind's name.
    public var rawValue: String {
        switch self {
        case .realms: "Realms"
        case .user: "User"
        case .reportingTreeNode: "ReportingTreeNode"
        case .reportingContext: "ReportingContext"
        case .reportingTemplate: "ReportingTemplate"
        case .timeEntry: "TimeEntry"
        case .timeEntryStatus: "TimeEntryStatus"
        case .person: "Person"
        case .personLookup: "PersonLookup"
        case .team: "Team"
        case .membership: "Membership"
        case .location: "Location"
        case .fieldTask: "FieldTask"
        case .taskNote: "TaskNote"
        case .share: "Share"
        case .appointment: "Appointment"
        case .note: "Note"
        case .sharedItem: "SharedItem"
        case .deletedObject: "DeletedObject"
        case .endedShare: "EndedShare"
        case .privateProfile: "PrivateProfile"
        case .notice: "Notice"
        case .defect: "Defect"
        case .defectCommand: "DefectCommand"
        case .defectAccount: "DefectAccount"
        case .defectPoll: "DefectPoll"
        case .deliveryChoice: "DeliveryChoice"
        case .poll: "Poll"
        case .seenRecord: "SeenRecord"
        case .writeCheckpoint: "WriteCheckpoint"
        case .own(let kind): kind.name
        }
    }
}

extension Kind {
    /// The kind's static properties. Each row is declared next to the fields it describes.
    package var row: KindRow {
        switch self {
        case .realms: RealmRegistration.row
        case .user: User.row
        case .reportingTreeNode: ReportingTreeNode.row
        case .reportingContext: ReportingContext.row
        case .reportingTemplate: ReportingTemplate.row
        case .timeEntry: TimeEntry.row
        case .timeEntryStatus: TimeEntryStatus.row
        case .person: Person.row
        case .personLookup: PersonLookup.row
        case .team: Team.row
        case .membership: Membership.row
        case .location: Location.row
        case .fieldTask: FieldTask.row
        case .taskNote: TaskNote.row
        case .share: Share.row
        case .appointment: Appointment.row
        case .note: Note.row
        case .sharedItem: SharedItem.row
        case .deletedObject: DeletedObject.row
        case .endedShare: EndedShare.row
        case .privateProfile: PrivateProfile.row
        case .notice: Notice.row
        case .defect: Defect.row
        case .defectCommand: DefectCommand.row
        case .defectAccount: DefectAccount.row
        case .defectPoll: DefectPoll.row
        case .deliveryChoice: DeliveryChoice.row
        case .poll: Poll.row
        case .seenRecord: SeenRecord.row
        case .writeCheckpoint: WriteCheckpoint.row
        case .own(let kind): kind.row
        }
    }
}

extension Kind {
    /// The kind's number in PostgreSQL, whose table `realm.kind` has the names. Numbers are never changed or reused.
    /// The first sixteen follow the alphabetical order; a new kind takes the next free number.
    package var number: Int16 {
        switch self {
        case .fieldTask: 1
        case .location: 2
        case .membership: 3
        case .person: 4
        case .personLookup: 5
        case .poll: 6
        case .realms: 7
        case .reportingContext: 8
        case .reportingTemplate: 9
        case .reportingTreeNode: 10
        case .seenRecord: 11
        case .share: 12
        case .team: 13
        case .timeEntry: 14
        case .timeEntryStatus: 15
        case .user: 16
        case .appointment: 17
        case .note: 18
        case .sharedItem: 19
        case .notice: 20
        case .defect: 21
        case .defectPoll: 22
        case .deliveryChoice: 25
        case .defectCommand: 23
        case .defectAccount: 24
        case .privateProfile: 26
        case .deletedObject: 27
        case .endedShare: 28
        case .taskNote: 29
        case .writeCheckpoint: 30
        case .own(let kind): kind.number
        }
    }

    /// Compares the numbers: the implementation for types with raw values would compare the names.
    public static func == (left: Kind, right: Kind) -> Bool { left.number == right.number }

    /// Hashes the number: hashing the name, the synthesized implementation, takes ten times as long.
    public func hash(into hasher: inout Hasher) { hasher.combine(number) }

    private static let byNumber: [Kind?] = {
        var kinds: [Kind?] = []
        for kind in allCases {
            let index = Int(kind.number)
            kinds += Array(repeating: nil, count: max(0, index + 1 - kinds.count))
            kinds[index] = kind
        }
        return kinds
    }()

    /// The kind with the lowest number.
    package static let first = allCases.min { $0.number < $1.number } ?? .fieldTask
    /// The highest number of a built-in kind in this program version.
    package static let numberMax = allCases.map(\.number).max() ?? 0

    /// Creates the kind of a row of `realm.kind`; a built-in kind that this program version does not have is like one
    /// that an environment declares.
    package init(number: Int16, name: String) {
        let own = OwnKind.numbers.contains(number)
        self = (own ? nil : Kind(number: number)) ?? .own(OwnKind(number: number, name: name))
    }

    /// Returns the kind with a number. A kind that an environment declares has neither its name nor its declaration.
    ///
    /// - Returns: `nil` if this program version has no kind with this number.
    package init?(number: Int16) {
        if OwnKind.numbers.contains(number) {
            self = .own(OwnKind(number: number))
            return
        }
        guard Self.byNumber.indices.contains(Int(number)), let kind = Self.byNumber[Int(number)] else { return nil }
        self = kind
    }
}
