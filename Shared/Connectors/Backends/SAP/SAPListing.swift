internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
internal import Model
internal import Synchronization

/// Bulk listing by company code and date. The time sheet has no queryable time stamp of a record's last change, and one
/// request per person is too many for thousands of people.
extension SAPBackend {
    /// Reads the days that fill a page or two, for each company code of `people`, and skips rows of other people.
    ///
    /// If pages shift, or the days have more rows than expected, it halves the number of days and reads again.
    package func listing(
        of people: [BackendPerson], from: Day, through: Day
    ) async throws(BackendError) -> BackendListing {
        var collector = SAPListingCollector(people, names)
        guard from <= through, !collector.companies.isEmpty else {
            return BackendListing(from: min(from, through), unreadable: collector.unreadable)
        }
        let rowsMax = max(2, connection.settings.listingRowsMax)
        var first = rowCounts.first(from: from, through: through, companies: collector.companies, rowsMax: rowsMax)
        var shiftCount = 0
        while true {
            switch try await readDays(&collector, first...through) {
            case .complete:
                return BackendListing(
                    from: first, entries: collector.entries, unreadable: collector.unreadable,
                    unreadableRecords: collector.unreadableRecords)
            case .shifted:
                shiftCount += 1
                guard shiftCount < SAPConnection.readAttemptsMax else {
                    throw .notProcessed(
                        reason: "\(SAPBackend.entries) changes faster than it can be read", retryAfter: nil)
                }
            case .tooLong:
                guard first < through else {
                    throw .notProcessed(
                        reason: "\(SAPBackend.entries) has too many rows on \(through)", retryAfter: nil)
                }
            }
            let dayCount = through.daysSinceEpoch - first.daysSinceEpoch + 1
            first = through.adding(days: 1 - (dayCount + 1) / 2)
        }
    }

    /// Reads the days of all company codes sequentially.
    private func readDays(
        _ collector: inout SAPListingCollector, _ days: ClosedRange<Day>
    ) async throws(BackendError) -> SAPConnection.PagingOutcome {
        collector.reset()
        let isOneDay = days.lowerBound == days.upperBound
        let pagesMax = isOneDay ? connection.settings.pagesMax : SAPRowCounts.pagesMax
        let rowsMax = max(2, connection.settings.listingRowsMax)
        // A system may apply a smaller page size than requested without reporting it: a short page is either the last
        // one or limited by the system. After a page of `pageRowsMax` rows or more, the next one is requested.
        let lastRowsMax = min(max(2, connection.settings.pageRowsMax), rowsMax)
        for company in collector.companies.keys.sorted() {
            let filter =
                "CompanyCode eq \(OData.literal(company)) and TimeSheetDate ge \(SAPTime.literal(days.lowerBound))"
                + " and TimeSheetDate le \(SAPTime.literal(days.upperBound))"
            var counts: [Day: Int] = [:]
            let outcome = try await connection.pages(
                SAPBackend.entries, "?$format=json&$filter=" + FormFields.encode(filter), rowsMax: rowsMax,
                lastRowsMax: lastRowsMax, pagesMax: pagesMax
            ) { (elements: ArraySlice<ListedElement<SAPListedRow>>) in
                for element in elements {
                    collector.add(element, on: days)
                    if case .row(let row) = element, let day = row.day { counts[day, default: 0] += 1 }
                }
            }
            rowCounts.record(counts, on: days, of: company, isComplete: outcome == .complete)
            guard outcome == .complete else { return outcome }
        }
        return .complete
    }
}

extension SAPPersonKey {
    fileprivate init(agreement: String, company: String) { (self.agreement, self.company) = (agreement, company) }
}

/// Collects the records of the requested people from the rows of a listing.
struct SAPListingCollector {
    /// Addresses by personnel assignment, which several addresses may share.
    private var emails: [SAPPersonKey: [String]] = [:]
    /// Number of personnel assignments by company code.
    private(set) var companies: [String: Int] = [:]
    private(set) var entries: [String: [BackendEntry]] = [:]
    private(set) var unreadable: Set<String> = []
    private(set) var unreadableRecords: [UnreadableRecord] = []
    /// People without a personnel assignment.
    private let unassigned: Set<String>
    private let names: FieldNames

    init(_ people: [BackendPerson], _ names: FieldNames) {
        self.names = names
        var unassigned: Set<String> = []
        for person in people {
            if let key = try? SAPPersonKey(person) {
                emails[key, default: []].append(person.email)
            } else {
                unassigned.insert(person.email)
            }
        }
        for key in emails.keys { companies[key.company, default: 0] += 1 }
        (self.unassigned, unreadable) = (unassigned, unassigned)
    }

    /// Discards all collected records.
    mutating func reset() { (entries, unreadable, unreadableRecords) = ([:], unassigned, []) }

    /// Adds a row. An unreadable row without an owner is detected when a person's missing record is verified.
    mutating func add(_ element: ListedElement<SAPListedRow>, on days: ClosedRange<Day>) {
        switch element {
        case .row(let row): add(row, on: days)
        case .unreadable(let id, let reason): addUnreadable(id, reason)
        }
    }

    private mutating func addUnreadable(_ id: String?, _ reason: String) {
        unreadableRecords.append(UnreadableRecord(list: SAPBackend.entries, id: id, reason: reason))
    }

    private mutating func add(_ row: SAPListedRow, on days: ClosedRange<Day>) {
        guard let people = emails[row.person] else { return }
        let entry: BackendEntry
        do {
            entry = try BackendEntry(try row.entry.get(), names)
        } catch {
            unreadable.formUnion(people)
            return addUnreadable(row.key, error.reason)
        }
        guard entry.status.isLive, days.contains(entry.day) else { return }
        for email in people { entries[email, default: []].append(entry) }
    }
}

/// A row of a company's listing. If its values are invalid, only its owner is affected.
struct SAPListedRow: SAPRow {
    let person: SAPPersonKey
    let entry: Result<SAPTimeSheetEntry, BackendError>
    static let idMembers = ["TimeSheetRecord", "PersonWorkAgreementExternalID"]
    /// The record's number, which is unique in a system, with the person.
    let key: String
    let day: Day?

    private struct Names: Decodable {
        let PersonWorkAgreementExternalID: String
        let CompanyCode: String
        let TimeSheetRecord: String
    }

    init(from decoder: any Decoder) throws {
        let names = try Names(from: decoder)
        person = SAPPersonKey(agreement: names.PersonWorkAgreementExternalID, company: names.CompanyCode)
        key = names.TimeSheetRecord + " " + names.PersonWorkAgreementExternalID
        do {
            let entry = try SAPTimeSheetEntry(from: decoder)
            self.entry = .success(entry)
            day = entry.TimeSheetDate.flatMap(SAPTime.day)
        } catch {
            entry = .failure(.notProcessed(reason: UnreadableJSON.reason(error, in: decoder), retryAfter: nil))
            day = nil
        }
    }
}

/// The number of rows per day and company at the last read, which determines the number of days per request. An
/// in-memory estimate: correctness does not depend on it.
final class SAPRowCounts: Sendable {
    /// Maximum number of pages for several days; with more rows than expected, fewer days are read.
    static let pagesMax = 4
    /// Maximum number of days of all companies; beyond it, the estimate is cleared.
    private static let countMax = 100_000
    /// Estimated records per person and day without data.
    private static let recordsPerPerson = 2

    private let counts = Mutex<[String: [Day: Int]]>([:])

    /// - Parameter companies: Number of people by company code.
    /// - Returns: The first of the days that fill a page.
    func first(from: Day, through: Day, companies: [String: Int], rowsMax: Int) -> Day {
        counts.withLock { counts in
            func rows(_ day: Day) -> Int {
                companies.reduce(0) { $0 + (counts[$1.key]?[day] ?? Self.recordsPerPerson * $1.value) }
            }
            var (first, count) = (through, rows(through))
            while first > from {
                let before = first.adding(days: -1)
                count += rows(before)
                if count > rowsMax { break }
                first = before
            }
            return first
        }
    }

    /// - Parameter isComplete: Whether days without rows in `newCounts` have no rows.
    func record(_ newCounts: [Day: Int], on days: ClosedRange<Day>, of company: String, isComplete: Bool) {
        counts.withLock { counts in
            if counts.values.reduce(0, { $0 + $1.count }) > Self.countMax { counts = [:] }
            var ofCompany = counts[company] ?? [:]
            var day = days.lowerBound
            while isComplete, day <= days.upperBound {
                ofCompany[day] = 0
                day = day.adding(days: 1)
            }
            ofCompany.merge(newCounts) { max($0, $1) }
            counts[company] = ofCompany
        }
    }
}
