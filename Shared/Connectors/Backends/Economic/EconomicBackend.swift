internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
package import HTTPClient
internal import Model

/// Adapter for e-conomic: time entries on a project and an activity, with the Projects API v20.
///
/// A person's `reference` needs `employeeNumber`.
///
/// - A time entry has a length and no start or end. Seconds are rounded to hours with two decimals, half up, as for SAP
///   (5400 s ⇄ 1.5). A record's id in Fieldpost is its `number`.
/// - There is no field for a foreign key, so the text ends with the ``EntryMarker``.
/// - A created entry waits for approval: it is `released`, then `approved` (`isApproved`), then `recorded`
///   (`isReconciled`). There is no rejection. Approved entries cannot be changed or deleted.
/// - Deleted entries leave no trace.
///
/// Source: the vendor's OpenAPI document of v20.0.0, https://apis.e-conomic.com. Assumed without a source: `date` and
/// `lastUpdated` can be compared in filters (the former with a plain date), and a time entry of another employee must
/// not be accessible, even if its number is known.
package struct EconomicBackend: TimeBackend {
    let connection: EconomicConnection
    let listings: EconomicListings
    let names: FieldNames
    let today: @Sendable () -> Day

    static let entries = "/timeentries"

    /// - Parameters:
    ///   - templates: The environment's declarations; by default, a project and an activity.
    ///   - today: Returns the current day, from which the days of suggestions are counted back.
    package init(
        _ settings: EconomicSettings, templates: TemplateDeclarations? = nil, client: Client,
        today: @escaping @Sendable () -> Day
    ) {
        let templates = templates ?? EconomicReporting.vocabulary.builtIn
        connection = EconomicConnection(settings: settings, client: client)
        listings = EconomicListings(connection, as: templates)
        names = FieldNames(templates)
        self.today = today
    }

    package var capabilities: BackendCapabilities {
        BackendCapabilities(
            approvedRecord: .isFinal, hasRejection: false, durationStepSeconds: Hours.secondsPerHundredth,
            supportsChangeFeed: true, supportsPeopleListing: true,
            textLengthMax: connection.settings.textLimit.lengthMax,
            textUnit: connection.settings.textLimit.unit)
    }

    package func create(_ submission: Submission) async throws(BackendError) -> String {
        let response = try await write("POST", try entry(of: submission), before: submission.before)
        struct Created: Decodable { let number: Int }
        guard let created = BackendResponse.decoded(Created.self, from: response.body) else {
            throw .outcomeUnknown(reason: "HTTP \(response.status) without the number of a time entry")
        }
        return String(created.number)
    }

    package func update(_ id: String, to submission: Submission) async throws(BackendError) -> String {
        let update = try entry(of: submission)
        let current = try await existing(id, of: submission.person)
        if try await put(update, over: current, before: submission.before) { return id }
        // Another client changed the entry, and nothing was written. Its change must not be overwritten unread.
        let newer = try await existing(id, of: submission.person)
        guard newer.hasSameContent(as: current), try await put(update, over: newer, before: submission.before) else {
            throw Self.conflict(id)
        }
        return id
    }

    package func delete(
        _ id: String, of person: BackendPerson, before deadline: WriteDeadline
    ) async throws(BackendError) {
        let current = try await existing(id, of: person)
        let path = "\(EconomicBackend.entries)/\(current.number)"
        let response = try await connection.write("DELETE", path, before: deadline)
        guard response.status != 409 else { throw Self.conflict(id) }
    }

    private static func conflict(_ id: String) -> BackendError {
        .notProcessed(reason: "time entry \(id) is being changed by another client", retryAfter: nil)
    }

    package func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry? {
        guard let entry = try await find(id, of: person) else { return nil }
        return try BackendEntry(entry, names)
    }

    package func lookUp(
        marker: String, of person: BackendPerson, on day: Day
    ) async throws(BackendError) -> [BackendEntry] {
        try await records(of: person, from: day, through: day).entries(withMarker: marker)
    }

    package func entries(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> [BackendEntry] {
        try await records(of: person, from: from, through: through).completeEntries()
    }

    package func records(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> BackendRecords {
        let employee = try EconomicBackend.employee(person)
        let filter = "employeeNumber$eq:\(employee)$and:date$gte:\(from)$and:date$lt:\(through.adding(days: 1))"
        let rows = try await connection.rows(EconomicBackend.entries, filter: filter, as: EconomicTimeEntry.self)
        return BackendRecords(rows.rows, of: EconomicBackend.entries, rows.unreadable, id: { String($0.number) }) {
            row throws(BackendError) in try BackendEntry(row, names)
        }
    }

    // MARK: Single entries

    private func find(_ id: String, of person: BackendPerson) async throws(BackendError) -> EconomicTimeEntry? {
        let employee = try EconomicBackend.employee(person)
        guard let number = Int(id), number > 0 else { return nil }
        let entry = try await connection.row("\(EconomicBackend.entries)/\(number)", as: EconomicTimeEntry.self)
        return entry?.employeeNumber == employee ? entry : nil
    }

    private func existing(_ id: String, of person: BackendPerson) async throws(BackendError) -> EconomicTimeEntry {
        guard let entry = try await find(id, of: person) else { throw .refused(["Time entry \(id) does not exist"]) }
        return entry
    }

    /// - Returns: False if the entry has another version meanwhile.
    private func put(
        _ update: EconomicTimeEntry, over current: EconomicTimeEntry, before deadline: WriteDeadline
    ) async throws(BackendError) -> Bool {
        var entry = update
        (entry.number, entry.objectVersion) = (current.number, current.objectVersion)
        return try await write("PUT", entry, before: deadline).status != 409
    }

    private func write(
        _ method: String, _ entry: EconomicTimeEntry, before deadline: WriteDeadline
    ) async throws(BackendError) -> Response {
        guard let body = try? JSONEncoder().encode(entry) else {
            throw .refused(["The entry cannot be encoded as JSON"])
        }
        return try await connection.write(method, EconomicBackend.entries, Array(body), before: deadline)
    }

    private func entry(of submission: Submission) throws(BackendError) -> EconomicTimeEntry {
        EconomicTimeEntry(
            number: 0, employeeNumber: try EconomicBackend.employee(submission.person),
            projectNumber: try number(EconomicReporting.projectNumber, of: submission),
            activityNumber: try number(EconomicReporting.activityNumber, of: submission),
            date: EconomicTime.date(submission.day),
            numberOfHours: EconomicTime.number(of: Hours(seconds: submission.durationSeconds)),
            text: EntryMarker.note(text: submission.text, marker: submission.marker))
    }

    private func number(_ field: String, of submission: Submission) throws(BackendError) -> Int {
        for name in submission.references.keys { _ = try names.field(of: name) }
        let context = names.name(of: field) ?? field
        guard let reference = submission.references[context] else { throw .refused(["No \(context) is selected"]) }
        guard let number = Int(reference) else { throw .refused(["\(context) \(reference) is not in e-conomic"]) }
        return number
    }

    static func employee(_ person: BackendPerson) throws(BackendError) -> Int {
        guard let number = person.reference["employeeNumber"].flatMap({ Int($0) }) else {
            throw .refused(["\(person.email) has no employee number in e-conomic"])
        }
        return number
    }
}
