package import Essentials
package import Foundation
package import Model

/// A service request of the City of Los Angeles (MyLA311 open data): a task of one of its crews.
package struct ServiceRequest: Sendable {
    /// The outcome of the request.
    package enum Outcome: Sendable { case completed, open, referred, cancelled }

    /// The columns that are read.
    package static let columns = [
        "SRNumber", "CreatedDate", "RequestType", "Status", "AssignTo", "ServiceDate", "ClosedDate", "Address",
        "ZipCode", "Latitude", "Longitude",
    ]

    /// The request's number, which is the task's description too.
    package let number: String
    /// The assigned crew; empty: none.
    package let crew: String
    package let outcome: Outcome
    /// The time when it was closed.
    package let closed: Timestamp?
    /// The task in its final state. A referred request has no team: it left these crews.
    package let task: FieldTask

    /// The permanent namespace of ids derived from numbers and names of this source.
    private static let namespace = UUID(
        uuid: (0xC6, 0x3F, 0x1B, 0x52, 0x8D, 0x04, 0x4E, 0x7A, 0xB1, 0x59, 0x27, 0xE0, 0x6C, 0x9D, 0x35, 0xF8))

    /// Returns the id of a request's task.
    package static func taskID(_ number: String) -> UUID { UUID(name: "la311/task/\(number)", in: namespace) }

    /// Returns the id of a crew's team.
    package static func teamID(_ crew: String) -> UUID { UUID(name: "la311/team/\(crew)", in: namespace) }

    /// Parses a row.
    ///
    /// - Parameter column: Returns the value of a column; empty if there is none. Surrounding spaces are ignored.
    package init(_ column: (String) -> String) throws(ImportProblem) {
        func value(_ name: String) -> String { column(name).trimmingCharacters(in: .whitespaces) }
        number = value("SRNumber")
        guard !number.isEmpty else { throw ImportProblem("'SRNumber' is empty") }
        crew = value("AssignTo")
        outcome =
            switch value("Status") {
            case "Closed": .completed
            case "Open": .open
            case "Referred Out": .referred
            case "Cancelled": .cancelled
            case let other: throw ImportProblem("unknown 'Status': '\(other.excerpt)'")
            }
        let title = value("RequestType")
        guard !title.isEmpty else { throw ImportProblem("'RequestType' is empty") }
        closed = try Self.time("ClosedDate", value)
        task = FieldTask(
            title: title, taskDescription: number, creationDate: try Self.time("CreatedDate", value),
            dueDate: try Self.time("ServiceDate", value), place: try Self.location(value),
            isCompleted: outcome == .completed, completionDate: outcome == .completed ? closed : nil,
            team: crew.isEmpty || outcome == .referred ? nil : Self.teamID(crew))
    }

    private static func time(_ name: String, _ value: (String) -> String) throws(ImportProblem) -> Timestamp? {
        let text = value(name)
        if text.isEmpty { return nil }
        guard let time = PacificTime.timestamp(text) else {
            throw ImportProblem("'\(name)' is '\(text.excerpt)', not MM/DD/YYYY hh:mm:ss AM or PM")
        }
        return time
    }

    /// Returns the address without its trailing ZIP code, and the coordinates.
    private static func location(_ value: (String) -> String) throws(ImportProblem) -> TaskLocation? {
        var coordinates: [Double?] = []
        for name in ["Latitude", "Longitude"] {
            let text = value(name)
            guard text.isEmpty || Double(text) != nil else { throw ImportProblem("'\(name)' is not a number") }
            coordinates.append(Double(text))
        }
        let zip = value("ZipCode")
        var street = value("Address")
        if !zip.isEmpty, street.hasSuffix(", \(zip)") { street.removeLast(zip.count + 2) }
        let location = TaskLocation(
            latitude: coordinates[0], longitude: coordinates[1], street: street.isEmpty ? nil : street,
            postalCode: zip.isEmpty ? nil : zip)
        return location == TaskLocation() ? nil : location
    }
}
