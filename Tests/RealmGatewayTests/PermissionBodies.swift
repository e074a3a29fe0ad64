import Essentials
import Foundation
import Model

/// What an object of each kind may hold: a value for every field, as JSON.
enum PermissionBodies {
    private static let id = "\"b0d1e5f0-0000-4000-8000-000000000001\""
    private static let time = "\"2026-03-30T08:00:00Z\""

    /// Valid values of all fields. Where a value follows from the object's id, or from who writes, `own` has it.
    static func values(_ kind: Kind, _ own: [String: String] = [:]) -> [String: String] {
        let values: [String: String] =
            switch kind {
            case .realms: ["userId": "\"x\"", "path": "\"/users/x\"", "isInitialized": "true"]
            case .user:
                ["email": "\"x@example.com\"", "name": "\"N\"", "catalogue": id, "reportingTemplates": "[\(id)]"]
            case .reportingTreeNode:
                [
                    "name": "\"N\"", "title": "\"T\"", "referenceId": "\"R\"", "parent": id, "hasDependencies": "true",
                    "dependencies": "[\(id)]",
                ]
            case .reportingContext:
                [
                    "name": "\"N\"", "required": "true", "visible": "true", "readOnly": "false",
                    "preselected": "[\(id)]", "sections": "[{\"name\":\"S\",\"rootNode\":\(id)}]",
                ]
            case .reportingTemplate: ["name": "\"N\"", "type": "\"T\"", "reportingContexts": "[\(id)]"]
            case .timeEntry: timeEntry
            case .timeEntryStatus:
                [
                    "entry": id, "status": "\"released\"", "timestamp": time, "message": "\"M\"", "code": "\"refused\"",
                ]
            case .person: ["name": "\"N\"", "avatar": id, "role": "\"worker\""]
            case .personLookup: ["name": "\"N\"", "email": "\"x@example.com\""]
            case .team:
                ["name": "\"N\"", "teamDescription": "\"D\"", "backgroundColor": "\"00ff00\"", "image": id]
            case .membership: [:]
            case .location: ["latitude": "48.1", "longitude": "11.6", "timestamp": time]
            case .fieldTask:
                [
                    "title": "\"T\"", "taskDescription": "\"D\"", "dueDate": time, "isCompleted": "true",
                    "completionDate": time, "assignee": id, "team": id,
                ]
            case .share: [:]
            // Services' own: nobody writes them.
            case .poll: ["run": "1", "person": "\"x@example.com\"", "dueAt": time]
            case .seenRecord:
                [
                    "backendId": "\"B\"", "marker": "\"M\"", "day": "\"2026-03-30\"", "durationSeconds": "3600",
                    "text": "\"T\"", "status": "\"released\"", "references": "{}", "message": "\"M\"",
                    "version": "\"1\"", "toldRun": "1",
                ]
            }
        return values.merging(own) { _, own in own }
    }

    private static let timeEntry = [
        "text": "\"T\"", "reportingTemplate": id, "reporting": "[{\"context\":\(id),\"node\":\(id)}]",
        "timeType": "\"interval\"", "entryDate": "\"2026-03-30\"", "startTime": "\"2026-03-30T08:00:00+02:00\"",
        "endTime": "\"2026-03-30T09:00:00+02:00\"", "durationSeconds": "3600", "createdOn": "\"2026-03-30\"",
        "submitRequested": "true", "status": "\"draft\"", "backendId": "\"B\"", "deleteRequested": "true",
        "statusAt": "\"2026-03-30T08:00:00.000Z\"",
    ]

    /// Without these there is no such object.
    static func required(_ kind: Kind) -> [String] {
        switch kind {
        case .realms: ["userId", "path"]
        case .user: ["email", "name"]
        case .reportingTreeNode, .reportingContext, .team: ["name"]
        case .reportingTemplate: ["name", "type"]
        case .timeEntry, .person: []
        case .timeEntryStatus: ["entry", "status", "timestamp"]
        case .personLookup: ["name", "email"]
        case .membership: ["person", "team"]
        case .location: ["latitude", "longitude"]
        case .fieldTask: ["title"]
        case .share: ["owner", "recipient"]
        case .poll: ["run", "person", "dueAt"]
        case .seenRecord: ["backendId", "day", "durationSeconds", "status", "references"]
        }
    }

    /// Fields as JSON; one that the kind does not have gets a value that any field could have.
    static func json(_ names: [String], _ values: [String: String]) -> String {
        "{" + names.map { "\"\($0)\":\(values[$0] ?? "0")" }.joined(separator: ",") + "}"
    }

    static func membership(_ person: UUID, _ team: UUID) -> (id: UUID, own: [String: String]) {
        (Membership.id(of: person, in: team), ["person": "\"\(person.text)\"", "team": "\"\(team.text)\""])
    }

    static func share(_ owner: UUID, _ recipient: UUID) -> [String: String] {
        ["owner": "\"\(owner.text)\"", "recipient": "\"\(recipient.text)\""]
    }
}
