package import Essentials
package import Foundation
package import Model

/// A service request of the City of Los Angeles (MyLA311 open data): a task of one of its crews.
package struct ServiceRequest: Sendable {
    /// What became of it.
    package enum Outcome: Sendable { case completed, open, referred, cancelled }

    /// The columns that are read.
    package static let columns = [
        "SRNumber", "CreatedDate", "RequestType", "Status", "AssignTo", "ServiceDate", "ClosedDate", "Address",
        "ZipCode", "Latitude", "Longitude",
    ]

    /// The request's number, which is the task's description too.
    package let number: String
    /// The crew that it was assigned to; empty: none.
    package let crew: String
    package let outcome: Outcome
    /// When it was closed, for whatever reason.
    package let closed: Timestamp?
    /// The task as it was in the end. One that was referred out has no team: who it was referred to has nothing to do
    /// with these crews.
    package let task: FieldTask

    /// The namespace of ids made of numbers and names of this source, chosen once and for ever.
    private static let namespace = UUID(
        uuid: (0xC6, 0x3F, 0x1B, 0x52, 0x8D, 0x04, 0x4E, 0x7A, 0xB1, 0x59, 0x27, 0xE0, 0x6C, 0x9D, 0x35, 0xF8))

    /// The id of the task of a request.
    package static func taskID(_ number: String) -> UUID { UUID(name: "la311/task/\(number)", in: namespace) }

    /// The id of the team that a crew is.
    package static func teamID(_ crew: String) -> UUID { UUID(name: "la311/team/\(crew)", in: namespace) }

    /// Reads a row.
    ///
    /// - Parameter column: The value of a column; empty when there is none. Spaces around it are of no account.
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
            case let other: throw ImportProblem("'Status' is '\(other.excerpt)'")
            }
        let title = value("RequestType")
        guard !title.isEmpty else { throw ImportProblem("'RequestType' is empty") }
        closed = try Self.time("ClosedDate", value)
        task = FieldTask(
            title: title, taskDescription: number, creationDate: try Self.time("CreatedDate", value),
            dueDate: try Self.time("ServiceDate", value), place: try Self.place(value),
            isCompleted: outcome == .completed, completionDate: outcome == .completed ? closed : nil,
            team: crew.isEmpty || outcome == .referred ? nil : Self.teamID(crew))
    }

    private static func time(_ name: String, _ value: (String) -> String) throws(ImportProblem) -> Timestamp? {
        let text = value(name)
        if text.isEmpty { return nil }
        guard let time = PacificTime.timestamp(text) else {
            throw ImportProblem("'\(name)' is '\(text.excerpt)', and not MM/DD/YYYY hh:mm:ss AM or PM")
        }
        return time
    }

    /// The address, without the ZIP code that stands behind it, and the coordinates.
    private static func place(_ value: (String) -> String) throws(ImportProblem) -> TaskPlace? {
        var coordinates: [Double?] = []
        for name in ["Latitude", "Longitude"] {
            let text = value(name)
            guard text.isEmpty || Double(text) != nil else { throw ImportProblem("'\(name)' is no number") }
            coordinates.append(Double(text))
        }
        let zip = value("ZipCode")
        var street = value("Address")
        if !zip.isEmpty, street.hasSuffix(", \(zip)") { street.removeLast(zip.count + 2) }
        let place = TaskPlace(
            latitude: coordinates[0], longitude: coordinates[1], street: street.isEmpty ? nil : street,
            postalCode: zip.isEmpty ? nil : zip)
        return place == TaskPlace() ? nil : place
    }
}
