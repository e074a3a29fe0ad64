import Essentials
import Foundation
import Model

/// A service request of the City of Los Angeles (MyLA311 open data): a task of one of its crews.
struct ServiceRequest: Sendable {
    /// The outcome of the request.
    enum Outcome: Sendable { case completed, open, referred, cancelled }

    /// The columns that are read.
    static let columns = [
        "SRNumber", "CreatedDate", "RequestType", "Status", "AssignTo", "ServiceDate", "ClosedDate", "Address",
        "ZipCode", "Latitude", "Longitude",
    ]

    /// The request's number, which is the task's description too.
    let number: String
    /// The assigned crew; empty: none.
    let crew: String
    let outcome: Outcome
    /// The time when it was closed.
    let closed: Timestamp?
    /// The task in its final state. A referred request has no team: it left these crews.
    let task: FieldTask

    /// The permanent namespace of ids derived from numbers and names of this source.
    private static let namespace = UUID(
        uuid: (0xC6, 0x3F, 0x1B, 0x52, 0x8D, 0x04, 0x4E, 0x7A, 0xB1, 0x59, 0x27, 0xE0, 0x6C, 0x9D, 0x35, 0xF8))

    /// Returns the id of a request's task.
    static func taskID(_ number: String) -> UUID { UUID(name: "la311/task/\(number)", in: namespace) }

    /// Returns the id of a crew's team.
    static func teamID(_ crew: String) -> UUID { UUID(name: "la311/team/\(crew)", in: namespace) }

    /// Parses a row.
    ///
    /// - Parameter column: Returns the value of a column; empty if there is none. Surrounding spaces are ignored.
    init(_ column: (String) -> String) throws(PublicDataProblem) {
        func value(_ name: String) -> String { column(name).trimmingCharacters(in: .whitespaces) }
        number = value("SRNumber")
        guard !number.isEmpty else { throw PublicDataProblem("'SRNumber' is empty") }
        crew = value("AssignTo")
        outcome =
            switch value("Status") {
            case "Closed": .completed
            case "Open": .open
            case "Referred Out": .referred
            case "Cancelled": .cancelled
            case let other: throw PublicDataProblem("unknown 'Status': '\(other.excerpt)'")
            }
        let title = value("RequestType")
        guard !title.isEmpty else { throw PublicDataProblem("'RequestType' is empty") }
        closed = try Self.time("ClosedDate", value)
        task = FieldTask(
            title: title, taskDescription: number, creationDate: try Self.time("CreatedDate", value),
            dueDate: try Self.time("ServiceDate", value), place: try Self.location(value),
            isCompleted: outcome == .completed, completionDate: outcome == .completed ? closed : nil,
            team: crew.isEmpty || outcome == .referred ? nil : Self.teamID(crew))
    }

    /// Parses the rows of a table.
    ///
    /// - Throws: ``PublicDataProblem``, which names the record.
    static func rows(of table: CSV) throws(PublicDataProblem) -> [ServiceRequest] {
        let indices = Dictionary(table.header.enumerated().map { ($1, $0) }) { first, _ in first }
        if let missing = columns.first(where: { indices[$0] == nil }) {
            throw PublicDataProblem("the first record names no column '\(missing)'")
        }
        var requests: [ServiceRequest] = []
        for (index, row) in table.rows.enumerated() {
            do throws(PublicDataProblem) {
                requests.append(try ServiceRequest { indices[$0].map { row[$0] } ?? "" })
            } catch {
                throw PublicDataProblem("record \(index + 2): \(error)")
            }
        }
        return requests
    }

    private static func time(_ name: String, _ value: (String) -> String) throws(PublicDataProblem) -> Timestamp? {
        let text = value(name)
        if text.isEmpty { return nil }
        guard let time = PacificTime.timestamp(text) else {
            throw PublicDataProblem("'\(name)' is '\(text.excerpt)', not MM/DD/YYYY hh:mm:ss AM or PM")
        }
        return time
    }

    /// Returns the address without its trailing ZIP code, and the coordinates.
    private static func location(_ value: (String) -> String) throws(PublicDataProblem) -> TaskLocation? {
        var coordinates: [Double?] = []
        for name in ["Latitude", "Longitude"] {
            let text = value(name)
            guard text.isEmpty || Double(text) != nil else { throw PublicDataProblem("'\(name)' is not a number") }
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
