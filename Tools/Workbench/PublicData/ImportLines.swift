import Essentials
import Foundation
import Model

/// Lines for `fieldpost import objects`: people and teams come before the objects that refer to them.
struct ImportLines {
    private struct Line<Fields: Encodable>: Encodable {
        let realm: RealmPath
        let kind: Kind
        let id: String
        let email: String?
        let fields: Fields
    }

    private var referenced: [UInt8] = []
    private var others: [UInt8] = []
    private let encoder = JSONEncoder()

    /// The lines, each with a line feed.
    var bytes: [UInt8] { referenced + others }

    /// Converts service requests to master tasks, and their crews to teams. A cancelled request has no task.
    init(_ requests: [ServiceRequest]) throws {
        self.init()
        var crews: Set<String> = [""]
        for request in requests {
            if crews.insert(request.crew).inserted {
                try add(.team, ServiceRequest.teamID(request.crew), in: .common, Team(name: request.crew))
            }
            if request.outcome != .cancelled {
                try add(.fieldTask, ServiceRequest.taskID(request.number), in: .manager, request.task)
            }
        }
    }

    /// Converts meetings, a line of JSON each, to appointments of their first chairs, shared with the other chairs.
    ///
    /// - Throws: ``PublicDataProblem``, which names the line.
    init(meetings: [UInt8], by calendar: MeetingCalendar) throws(PublicDataProblem) {
        self.init()
        var people: Set<UUID> = []
        try MeetingCalendar.forEachLine(of: meetings) { _, meeting in
            if meeting.isDeletion { return }
            let (items, chairs) = (try calendar.items(of: meeting), calendar.chairs(of: meeting))
            guard let owner = chairs.first else {
                throw PublicDataProblem("the meeting has no chair to own the appointment")
            }
            for chair in chairs where people.insert(chair.id).inserted {
                try add(.person, chair.id, in: .common, Person(name: chair.name), email: chair.email)
            }
            let realm = try RealmPath.user(owner.email)
            for item in items {
                try add(.appointment, item.id, in: realm, item.appointment)
                for recipient in chairs.dropFirst().map(\.id) {
                    try add(
                        .sharedItem, SharedItem.id(of: item.id, with: recipient), in: realm,
                        SharedItem(kind: .appointment, item: item.id, recipient: recipient))
                }
            }
        }
    }

    private init() { encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes] }

    private mutating func add(
        _ kind: Kind, _ id: UUID, in realm: RealmPath, _ fields: some KindFields, email: String? = nil
    ) throws {
        let line = Line(realm: realm, kind: kind, id: id.text, email: email, fields: fields)
        let bytes = Array(try encoder.encode(line)) + [UInt8(ascii: "\n")]
        if realm == .common { referenced += bytes } else { others += bytes }
    }
}
