internal import BackendHTTP
package import BackendProtocol
package import Essentials
internal import FoundationEssentials
internal import HTTPClient
internal import Model
internal import Synchronization

/// The records of whole companies, by date and without regard to the person: the time sheet has no time stamp of a
/// record's last change that could be asked for, and one request per person is too many for thousands of people.
extension SAPBackend {
    /// Reads so many days that a page or two hold them, of each company code that one of `people` belongs to. While
    /// pages shift, or the days hold more than was expected, it reads fewer of them. Rows of other people are passed
    /// over page by page.
    package func listing(
        of people: [BackendPerson], from: Day, through: Day
    ) async throws(BackendError) -> BackendListing {
        var asked = SAPAskedPeople(people, names)
        guard from <= through, !asked.companies.isEmpty else {
            return BackendListing(from: min(from, through), unreadable: asked.unreadable)
        }
        let rowsMax = max(2, connection.settings.listingRowsMax)
        var first = listedDays.first(from: from, through: through, companies: asked.companies, rowsMax: rowsMax)
        var readingCount = 0
        while true {
            switch try await reading(&asked, first...through) {
            case .whole:
                return BackendListing(
                    from: first, entries: asked.entries, unreadable: asked.unreadable,
                    unreadableRecords: asked.unreadableRecords)
            case .shifted:
                readingCount += 1
                guard readingCount < SAPConnection.readingsMax else {
                    throw .notProcessed(
                        reason: "\(SAPBackend.entries) changes faster than it can be read", retryAfter: nil)
                }
            case .long:
                guard first < through else {
                    throw .notProcessed(
                        reason: "\(SAPBackend.entries) has too many rows on \(through)", retryAfter: nil)
                }
            }
            let dayCount = through.daysSinceEpoch - first.daysSinceEpoch + 1
            first = through.adding(days: 1 - (dayCount + 1) / 2)
        }
    }

    /// Reads the days of all company codes, one after the other.
    private func reading(
        _ asked: inout SAPAskedPeople, _ days: ClosedRange<Day>
    ) async throws(BackendError) -> SAPConnection.Reading {
        asked.begin()
        let isOneDay = days.lowerBound == days.upperBound
        let pagesMax = isOneDay ? connection.settings.pagesMax : SAPListedDays.pagesMax
        for company in asked.companies.keys.sorted() {
            let filter =
                "CompanyCode eq \(OData.literal(company)) and TimeSheetDate ge \(SAPTime.literal(days.lowerBound))"
                + " and TimeSheetDate le \(SAPTime.literal(days.upperBound))"
            let (outcome, counts) = try await connection.pages(
                SAPBackend.entries, filter: filter, pagesMax: pagesMax, people: &asked, days: days)
            listedDays.note(counts, on: days, of: company, isWhole: outcome == .whole)
            guard outcome == .whole else { return outcome }
        }
        return .whole
    }
}

extension SAPPersonKey {
    fileprivate init(agreement: String, company: String) { (self.agreement, self.company) = (agreement, company) }
}

/// Who is asked for, and what is found of them.
struct SAPAskedPeople {
    /// People by what identifies them: an assignment may be several addresses'.
    private var emails: [SAPPersonKey: [String]] = [:]
    /// Assignments of each company code.
    private(set) var companies: [String: Int] = [:]
    private(set) var entries: [String: [BackendEntry]] = [:]
    private(set) var unreadable: Set<String> = []
    private(set) var unreadableRecords: [UnreadableRecord] = []
    /// Those without an assignment.
    private let unknown: Set<String>
    private let names: FieldNames

    init(_ people: [BackendPerson], _ names: FieldNames) {
        self.names = names
        var unknown: Set<String> = []
        for person in people {
            if let key = try? SAPPersonKey(person) {
                emails[key, default: []].append(person.email)
            } else {
                unknown.insert(person.email)
            }
        }
        for key in emails.keys { companies[key.company, default: 0] += 1 }
        (self.unknown, unreadable) = (unknown, unknown)
    }

    /// What was found counts no more.
    mutating func begin() { (entries, unreadable, unreadableRecords) = ([:], unknown, []) }

    /// Takes a row. Whose it is that does not say it is seen by all records of the person who misses one.
    mutating func take(_ element: ListedElement<SAPListedRow>, on days: ClosedRange<Day>) {
        switch element {
        case .row(let row): take(row, on: days)
        case .unreadable(let id, let reason): lose(id, reason)
        }
    }

    private mutating func lose(_ id: String?, _ reason: String) {
        unreadableRecords.append(UnreadableRecord(list: SAPBackend.entries, id: id, reason: reason))
    }

    private mutating func take(_ row: SAPListedRow, on days: ClosedRange<Day>) {
        guard let people = emails[row.person] else { return }
        let entry: BackendEntry
        do {
            entry = try BackendEntry(try row.entry.get(), names)
        } catch {
            unreadable.formUnion(people)
            return lose(row.key, error.reason)
        }
        guard entry.status.isLive, days.contains(entry.day) else { return }
        for email in people { entries[email, default: []].append(entry) }
    }
}

/// A row of a company's listing. One whose values are not what they should be concerns its person alone.
struct SAPListedRow: SAPRow {
    let person: SAPPersonKey
    let entry: Result<SAPTimeSheetEntry, BackendError>
    static let idMembers = ["TimeSheetRecord", "PersonWorkAgreementExternalID"]
    /// A number is given once in a system; the person only makes sure.
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

extension SAPConnection {
    /// How a reading of pages ended.
    enum Reading {
        case whole
        /// Rows came or went meanwhile, so one may have been passed over.
        case shifted
        /// There are more pages than were to be read.
        case long
    }

    /// Reads pages until there are no more, each from the last row of the one before; see `rows`.
    ///
    /// A system may have a bound of its own, below what is asked for, and does not say so: a page that is short may be
    /// the last one, or full by that bound. Up to `pageRowsMax` rows it is the last; of a longer one it is seen whether
    /// anything follows.
    ///
    /// - Returns: How many rows each day has, as far as they were read.
    func pages(
        _ path: String, filter: String, pagesMax: Int, people: inout SAPAskedPeople,
        days: ClosedRange<Day>
    ) async throws(BackendError) -> (outcome: Reading, counts: [Day: Int]) {
        let rowsMax = max(2, settings.listingRowsMax)
        let lastRowsMax = min(max(2, settings.pageRowsMax), rowsMax)
        let query = "?$format=json&$filter=" + URLText.escape(filter) + "&$top=\(rowsMax)"
        var counts: [Day: Int] = [:]
        var (count, last) = (0, String?.none)
        for _ in 0..<pagesMax {
            let response = try await read(path + query + "&$skip=\(max(0, count - 1))")
            try SAPAnswer.check(response, isWrite: false)
            let results = try HTTPAnswer.decode(ODataRows<SAPListedRow>.self, from: response.body).d.results
            if let last, results.first?.key != last { return (.shifted, counts) }
            let new = results.dropFirst(last == nil ? 0 : 1)
            for element in new {
                people.take(element, on: days)
                if case .row(let row) = element, let day = row.day { counts[day, default: 0] += 1 }
            }
            count += new.count
            last = results.last?.key
            if results.count < lastRowsMax || new.isEmpty { return (.whole, counts) }
        }
        return (.long, counts)
    }
}

/// How many rows the days of companies had when they were last read: how many of them are read at a time is chosen by
/// that. It is kept in memory, and nothing depends on its being right.
final class SAPListedDays: Sendable {
    /// Pages of several days that are read; then there are more rows than were expected, and fewer days are read.
    static let pagesMax = 4
    /// Days remembered of all companies; then they are forgotten.
    private static let countMax = 100_000
    /// Records of a person on a day of which nothing is known.
    private static let recordsPerPerson = 2

    private let known = Mutex<[String: [Day: Int]]>([:])

    /// - Parameter companies: How many people there are of each company code.
    /// - Returns: The first of the days that fill a page.
    func first(from: Day, through: Day, companies: [String: Int], rowsMax: Int) -> Day {
        known.withLock { known in
            func rows(_ day: Day) -> Int {
                companies.reduce(0) { $0 + (known[$1.key]?[day] ?? Self.recordsPerPerson * $1.value) }
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

    /// - Parameter isWhole: Whether the days that have no rows in `counts` have none.
    func note(_ counts: [Day: Int], on days: ClosedRange<Day>, of company: String, isWhole: Bool) {
        known.withLock { known in
            if known.values.reduce(0, { $0 + $1.count }) > Self.countMax { known = [:] }
            var noted = known[company] ?? [:]
            var day = days.lowerBound
            while isWhole, day <= days.upperBound {
                noted[day] = 0
                day = day.adding(days: 1)
            }
            noted.merge(counts) { max($0, $1) }
            known[company] = noted
        }
    }
}
