internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
package import HTTPClient
internal import Model

/// Adapter for SAP S/4HANA: time sheets, with projects and business partners as reporting data.
///
/// A person's `reference` needs `personWorkAgreementExternalId`, `companyCode` and, for reporting data,
/// `businessPartnerUuid`. No public service of S/4HANA maps an e-mail address to them.
///
/// The time sheet has no start and end. Seconds are rounded to hours with two decimals, half up (18 seconds, half a
/// hundredth of an hour, are rounded up). A record's id in Fieldpost is its `TimeSheetRecord`.
package struct SAPBackend: TimeBackend {
    let connection: SAPConnection
    let templates: TemplateDeclarations
    let names: FieldNames
    let today: @Sendable () -> Day
    let rowCounts = SAPRowCounts()

    static let entries = SAPConnection.timeSheet + "/TimeSheetEntryCollection"

    /// - Parameters:
    ///   - templates: The environment's declarations; by default, projects grouped by customer.
    ///   - today: Returns the current day, from which the days of suggestions are counted back.
    package init(
        _ settings: SAPSettings, templates: TemplateDeclarations? = nil, client: Client,
        today: @escaping @Sendable () -> Day
    ) {
        connection = SAPConnection(settings: settings, client: client)
        self.templates = templates ?? SAPReporting.vocabulary.builtIn
        // A default value of the adapter is not a choice.
        names = FieldNames(self.templates, defaults: settings.activityType.map { ["ActivityType": $0] } ?? [:])
        self.today = today
    }

    package var capabilities: BackendCapabilities {
        BackendCapabilities(
            approvedRecord: .isReplaced, hasRejection: true, durationStepSeconds: Hours.secondsPerHundredth,
            supportsBulkListing: true, textLengthMax: connection.settings.textLimit.lengthMax,
            textUnit: connection.settings.textLimit.unit)
    }

    package func create(_ submission: Submission) async throws(BackendError) -> String {
        try await write(try entry(of: submission, operation: "C", record: nil), before: submission.before)
    }

    package func update(_ id: String, to submission: Submission) async throws(BackendError) -> String {
        try await write(try entry(of: submission, operation: "U", record: id), before: submission.before)
    }

    package func delete(
        _ id: String, of person: BackendPerson, before deadline: WriteDeadline
    ) async throws(BackendError) {
        let key = try SAPPersonKey(person)
        _ = try await write(
            SAPTimeSheetEntry(
                PersonWorkAgreementExternalID: key.agreement, CompanyCode: key.company, TimeSheetRecord: id,
                TimeSheetOperation: "D"), before: deadline)
    }

    package func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry? {
        let key = try SAPPersonKey(person)
        let predicate =
            "(PersonWorkAgreementExternalID=\(OData.literal(key.agreement)),CompanyCode=\(OData.literal(key.company)),"
            + "TimeSheetRecord=\(OData.literal(id)))"
        let path = SAPBackend.entries + FormFields.encode(predicate)
        guard let entry = try await connection.entity(path, as: SAPTimeSheetEntry.self) else { return nil }
        return try BackendEntry(entry, names)
    }

    package func lookUp(
        marker: String, of person: BackendPerson, on day: Day
    ) async throws(BackendError) -> [BackendEntry] {
        try await records(of: person, where: "TimeSheetDate eq \(SAPTime.literal(day))").entries(withMarker: marker)
    }

    package func entries(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> [BackendEntry] {
        try await records(of: person, from: from, through: through).completeEntries()
    }

    package func records(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> BackendRecords {
        // Only ge, le and eq: gt and lt are wrong for dates (SAP KBA 3744148).
        try await records(
            of: person,
            where: "TimeSheetDate ge \(SAPTime.literal(from)) and TimeSheetDate le \(SAPTime.literal(through))")
    }

    private func records(
        of person: BackendPerson, where condition: String
    ) async throws(BackendError) -> BackendRecords {
        let key = try SAPPersonKey(person)
        let filter =
            "PersonWorkAgreementExternalID eq \(OData.literal(key.agreement)) and "
            + "CompanyCode eq \(OData.literal(key.company)) and \(condition)"
        let rows = try await connection.rows(SAPBackend.entries, filter: filter, as: SAPTimeSheetEntry.self)
        var records = BackendRecords(rows.rows, of: SAPBackend.entries, rows.unreadable, id: \.TimeSheetRecord) {
            row throws(BackendError) in try BackendEntry(row, names)
        }
        records.entries.removeAll { !$0.status.isLive }
        return records
    }

    private func entry(
        of submission: Submission, operation: String, record: String?
    ) throws(BackendError) -> SAPTimeSheetEntry {
        let key = try SAPPersonKey(submission.person)
        let hours = Hours(seconds: submission.durationSeconds)
        guard hours <= SAPTime.hoursMax else {
            throw .refused(["\(hours) hours are more than one record of the time sheet can hold (\(SAPTime.hoursMax))"])
        }
        // An update clears assignments that were removed.
        var assignments: [String: String] = [:]
        if record != nil { for field in names.fields { assignments[field] = "" } }
        if let activityType = connection.settings.activityType { assignments["ActivityType"] = activityType }
        var isAssigned = false
        for (name, reference) in submission.references {
            guard let field = try names.field(of: name) else { continue }
            assignments[field] = reference
            isAssigned = true
        }
        guard isAssigned else { throw .refused(["None of \(names.names.joined(separator: ", ")) is selected"]) }
        let fields = SAPTimeSheetEntry.DataFields(
            TimeSheetNote: EntryMarker.note(text: submission.text, marker: submission.marker),
            RecordedHours: hours.description, HoursUnitOfMeasure: "H", assignments: assignments)
        return SAPTimeSheetEntry(
            TimeSheetDataFields: fields, PersonWorkAgreementExternalID: key.agreement, CompanyCode: key.company,
            TimeSheetRecord: record, TimeSheetDate: SAPTime.date(submission.day), TimeSheetIsReleasedOnSave: true,
            TimeSheetOperation: operation)
    }

    /// - Returns: The record's number in the response.
    private func write(
        _ entry: SAPTimeSheetEntry, before deadline: WriteDeadline
    ) async throws(BackendError) -> String {
        guard let body = try? JSONEncoder().encode(entry) else {
            throw .refused(["The entry cannot be encoded as JSON"])
        }
        let response = try await connection.post(SAPBackend.entries, Array(body), before: deadline)
        // The rest of the response proves nothing: the record is read back.
        let number = BackendResponse.decoded(ODataEntity<SAPRecordNumber>.self, from: response.body)?.d
        guard let record = number?.TimeSheetRecord, record.contains(where: { $0 != "0" }) else {
            throw .outcomeUnknown(reason: "HTTP \(response.status) without the number of a record")
        }
        return record
    }
}

/// The identifiers of a person in the time sheet.
struct SAPPersonKey: Hashable {
    let agreement: String
    let company: String

    init(_ person: BackendPerson) throws(BackendError) {
        guard let agreement = person.reference["personWorkAgreementExternalId"], !agreement.isEmpty,
            let company = person.reference["companyCode"], !company.isEmpty
        else {
            throw .refused(["\(person.email) has no personnel assignment in SAP"])
        }
        self.agreement = agreement
        self.company = company
    }
}
