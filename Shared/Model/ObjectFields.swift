import FoundationEssentials

extension Kind {
    /// The names of the kind's fields. A golden file says the same.
    public var fieldNames: [String] {
        switch self {
        case .realms: ["userId", "path", "isInitialized"]
        case .user: ["email", "name", "catalogue", "reportingTemplates"]
        case .reportingTreeNode: ["name", "title", "referenceId", "parent", "hasDependencies", "dependencies"]
        case .reportingContext: ["name", "required", "visible", "readOnly", "preselected", "sections"]
        case .reportingTemplate: ["name", "type", "reportingContexts"]
        case .timeEntry: EntryField.allCases.map(\.rawValue)
        case .timeEntryStatus: ["entry", "status", "timestamp", "message", "code"]
        case .person: ["name", "avatar", "role"]
        case .personLookup: ["name", "email"]
        case .team: ["name", "teamDescription", "backgroundColor", "image"]
        case .membership: ["person", "team"]
        case .location: ["latitude", "longitude", "timestamp"]
        case .fieldTask: ["title", "taskDescription", "dueDate", "isCompleted", "completionDate", "assignee", "team"]
        case .share: ["owner", "recipient"]
        case .poll: ["run", "person", "dueAt"]
        case .seenRecord:
            [
                "backendId", "marker", "day", "durationSeconds", "text", "status", "references", "message", "version",
                "toldRun",
            ]
        }
    }

    /// The largest fields of an object of any kind, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// The largest fields of an object that everybody of an environment holds.
    public static let commonBytesMax = 4096

    /// The most bytes that the fields of an object of this kind may have.
    public var fieldsBytesMax: Int {
        switch self {
        case .person, .personLookup, .team, .membership, .location: Self.commonBytesMax
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .fieldTask, .share, .poll, .seenRecord:
            Self.fieldsBytesMax
        }
    }

    /// Why these fields are not those of an object of this kind; `nil` when they are.
    public func objection(to fields: [UInt8]) -> String? {
        switch self {
        case .realms: Self.read(RealmRegistration.self, fields)
        case .user: Self.read(User.self, fields)
        case .reportingTreeNode: Self.read(ReportingTreeNode.self, fields)
        case .reportingContext: Self.read(ReportingContext.self, fields, \.objection)
        case .reportingTemplate: Self.read(ReportingTemplate.self, fields)
        case .timeEntry: Self.read(TimeEntry.self, fields)
        case .timeEntryStatus: Self.read(TimeEntryStatus.self, fields)
        case .person: Self.read(Person.self, fields)
        case .personLookup: Self.read(PersonLookup.self, fields)
        case .team: Self.read(Team.self, fields)
        case .membership: Self.read(Membership.self, fields)
        case .location: Self.read(Location.self, fields)
        case .fieldTask: Self.read(FieldTask.self, fields)
        case .share: Self.read(Share.self, fields)
        case .poll: Self.read(Poll.self, fields)
        case .seenRecord: Self.read(SeenRecord.self, fields)
        }
    }

    /// - Parameter rule: What is wrong with fields that can be read.
    private static func read<Fields: Decodable>(
        _ type: Fields.Type, _ fields: [UInt8], _ rule: (Fields) -> String? = { _ in nil }
    ) -> String? {
        do {
            return rule(try JSONDecoder().decode(type, from: Data(fields)))
        } catch let error as DecodingError {
            return describe(error)
        } catch {
            return "it cannot be read"
        }
    }

    private static func describe(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.first.map { "'\($0.stringValue)'" } ?? "the object"
        }
        return switch error {
        case .keyNotFound(let key, _): "'\(key.stringValue)' is missing"
        case .valueNotFound(_, let context): "\(place(context)) is missing"
        case .typeMismatch(_, let context): "\(place(context)) has not the shape it needs"
        case .dataCorrupted(let context): "\(place(context)): \(context.debugDescription.prefix(200))"
        @unknown default: "it cannot be read"
        }
    }
}
