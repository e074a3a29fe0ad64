/// What an object is. The raw value is the kind's name in events and in the device API; PostgreSQL has its ``number``.
public enum Kind: String, Codable, CaseIterable, Sendable {
    /// A user's realm and whether it is filled; fields: ``RealmRegistration`` (the type), in the realm `/users`.
    case realms = "Realms"
    /// The person a personal realm belongs to; fields: ``User`` (the type).
    case user = "User"
    /// One node of a reporting tree, in a catalogue; fields: ``ReportingTreeNode`` (the type).
    case reportingTreeNode = "ReportingTreeNode"
    /// One choice an entry's author makes; fields: ``ReportingContext`` (the type).
    case reportingContext = "ReportingContext"
    /// The contexts an entry of one sort needs; fields: ``ReportingTemplate`` (the type).
    case reportingTemplate = "ReportingTemplate"
    /// Registered time; fields: ``TimeEntry`` (the type).
    case timeEntry = "TimeEntry"
    /// One line of an entry's status log; fields: ``TimeEntryStatus`` (the type).
    case timeEntryStatus = "TimeEntryStatus"
    /// What everybody may know of a person, in `/common`; fields: ``Person`` (the type).
    case person = "Person"
    /// What a person wants to be found by, in `/common`; fields: ``PersonLookup`` (the type).
    case personLookup = "PersonLookup"
    /// A team, in `/common`; fields: ``Team`` (the type).
    case team = "Team"
    /// That a person is in a team, in `/common`; fields: ``Membership`` (the type).
    case membership = "Membership"
    /// Where a person was last; fields: ``Location`` (the type).
    case location = "Location"
    /// A piece of work; fields: ``FieldTask`` (the type).
    case fieldTask = "FieldTask"
    /// That a person shares items with another; fields: ``Share`` (the type).
    case share = "Share"
    /// Something a person does at a time; fields: ``Appointment`` (the type).
    case appointment = "Appointment"
    /// What a person writes down; fields: ``Note`` (the type).
    case note = "Note"
    /// That a person shares one item with another; fields: ``SharedItem`` (the type).
    case sharedItem = "SharedItem"
    /// What a person is to know of; fields: ``Notice`` (the type).
    case notice = "Notice"
    /// A defect that is assigned to a person, or that they reported; fields: ``Defect`` (the type).
    case defect = "Defect"
    /// What a person wants to be done with a defect; fields: ``DefectCommand`` (the type).
    case defectCommand = "DefectCommand"
    /// A person's own login in the tracker of defects; fields: ``DefectAccount`` (the type).
    case defectAccount = "DefectAccount"
    /// That the tracker of defects is to be read, in `/polls`; fields: ``DefectPoll`` (the type).
    case defectPoll = "DefectPoll"
    /// How a person wants to be told of notices outside of their devices; fields: ``DeliveryChoice`` (the type).
    case deliveryChoice = "DeliveryChoice"
    /// That a person's records in the back end are to be read, in `/polls`; fields: ``Poll`` (the type).
    case poll = "Poll"
    /// What the back end was last seen to hold of an entry; fields: ``SeenRecord`` (the type).
    case seenRecord = "SeenRecord"
}

extension Kind {
    /// The table of kinds: what is looked up about this one. Each row stands beside the fields it is about.
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
        case .share: Share.row
        case .appointment: Appointment.row
        case .note: Note.row
        case .sharedItem: SharedItem.row
        case .notice: Notice.row
        case .defect: Defect.row
        case .defectCommand: DefectCommand.row
        case .defectAccount: DefectAccount.row
        case .defectPoll: DefectPoll.row
        case .deliveryChoice: DeliveryChoice.row
        case .poll: Poll.row
        case .seenRecord: SeenRecord.row
        }
    }
}

extension Kind {
    /// The kind's number in PostgreSQL, whose table `realm.kind` has the names. It is never changed, nor given to
    /// another kind. The first sixteen are in the order of the names; a new kind takes the next one.
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
        }
    }

    /// By its number: the name, which Swift would hash otherwise, takes ten times as long.
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
    /// The highest number of a kind that this program knows.
    package static let numberMax = allCases.map(\.number).max() ?? 0

    /// - Returns: `nil` for the number of a kind that this program does not know.
    package init?(number: Int16) {
        guard Self.byNumber.indices.contains(Int(number)), let kind = Self.byNumber[Int(number)] else { return nil }
        self = kind
    }
}
