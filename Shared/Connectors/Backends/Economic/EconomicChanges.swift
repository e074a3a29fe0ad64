internal import BackendHTTP
package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

extension EconomicBackend {
    /// Reads changes by `lastUpdated`, one page per call, ordered by number. An entry that changes meanwhile keeps its
    /// position, and changes on pages that were already read have a time stamp that the next pass reads.
    ///
    /// If a page's cursor is rejected, or pages are circular, the pass ends, and the next one starts from the same
    /// time. It does not start immediately, because it may fail again.
    ///
    /// Unreadable entries are omitted and reported. At the end of a pass, the listings of choices are read too, because
    /// they cannot be queried for changes.
    package func changes(
        of people: [BackendPerson], since text: String?
    ) async throws(BackendError) -> BackendChanges {
        guard var cursor = text.flatMap(EconomicCursor.init) else {
            guard let page = try await page("number$eq:0", cursor: nil) else {
                throw .notProcessed(reason: "the first page is rejected", retryAfter: nil)
            }
            let cursor = EconomicCursor(since: page.time, choices: try await listings.choices().digest)
            return BackendChanges(changes: [], cursor: cursor.description, hasMore: false)
        }
        let overlapSeconds = Int(connection.settings.changesOverlap.components.seconds)
        let filter = "lastUpdated$gte:" + EconomicTime.text(cursor.since - overlapSeconds)
        guard let page = try await page(filter, cursor: cursor.pass?.page) else {
            cursor.pass = nil
            return BackendChanges(
                changes: [], cursor: cursor.description, hasMore: false, problem: "the cursor of a page is rejected")
        }
        let listed = ListedRows(page.rows, of: EconomicBackend.entries)
        let stamps = listed.rows.compactMap { $0.lastUpdated.flatMap(EconomicTime.seconds) }
        let isAdvancing = cursor.advance(newest: stamps.max(), at: page.time, next: page.next)
        var emails: [Int: [String]] = [:]
        for person in people {
            guard let employee = try? EconomicBackend.employee(person) else { continue }
            emails[employee, default: []].append(person.email)
        }
        let ofPeople = listed.rows.filter { emails[$0.employeeNumber] != nil }
        var changes: [BackendChanges.Change] = []
        let records = BackendRecords(
            ofPeople, of: EconomicBackend.entries, listed.unreadable, id: { String($0.number) }
        ) { row throws(BackendError) in
            let entry = try BackendEntry(row, names)
            changes += (emails[row.employeeNumber] ?? []).map { BackendChanges.Change(person: $0, entry: entry) }
            return entry
        }
        if !isAdvancing, let next = page.next {
            return BackendChanges(
                changes: changes, cursor: cursor.description, hasMore: false,
                problem: PageTrail.problem(of: EconomicBackend.entries, at: next), unreadable: records.unreadable)
        }
        let choices = cursor.choices
        if cursor.pass == nil { cursor.choices = try await listings.choices().digest }
        return BackendChanges(
            changes: changes, cursor: cursor.description, hasMore: cursor.pass != nil,
            haveChoicesChanged: cursor.choices != choices, unreadable: records.unreadable)
    }

    private func page(
        _ filter: String, cursor: String?
    ) async throws(BackendError) -> (rows: [ListedElement<EconomicTimeEntry>], next: String?, time: Int)? {
        let page = try await connection.page(
            EconomicBackend.entries, filter: filter, cursor: cursor, as: EconomicTimeEntry.self)
        guard let page else { return nil }
        guard let time = page.timeSeconds else {
            throw .notProcessed(reason: "a response without the time (Date) of e-conomic's clock", retryAfter: nil)
        }
        return (page.rows, page.next, time)
    }
}

/// The position in the changes. All times are e-conomic's own, in seconds since 1970.
struct EconomicCursor: Equatable {
    /// A read of all changes since a time, page by page.
    struct Pass: Equatable {
        /// The time of the response with the first page.
        var beganAt: Int
        /// The largest `lastUpdated` that was read, at most `beganAt`.
        var newest: Int
        /// The next page's cursor.
        var page: String
        /// The previous cursors.
        var trail: PageTrail
    }

    /// Changes up to this time were read, except those that the overlap is for.
    var since: Int
    /// The digest of the choices of that time.
    var choices: UUID
    /// `nil` after the last page: the next call starts a new pass.
    var pass: Pass?

    /// Advances after a page was read.
    ///
    /// At the end of a pass, the next one starts at the newest time stamp. Entries that changed during the pass may
    /// have been on pages that were already read, so it starts no later than this pass did.
    ///
    /// - Parameters:
    ///   - newest: The largest `lastUpdated` of the page.
    ///   - time: The time of the response.
    ///   - next: The next page's cursor.
    /// - Returns: False if the next page was read before; the pass is then discarded.
    mutating func advance(newest: Int?, at time: Int, next: String?) -> Bool {
        var trail = pass?.trail ?? PageTrail()
        if let next, !trail.follow(next) {
            pass = nil
            return false
        }
        let beganAt = pass?.beganAt ?? time
        let newest = min(max(pass?.newest ?? since, newest ?? since), beganAt)
        pass = next.map { Pass(beganAt: beganAt, newest: newest, page: $0, trail: trail) }
        if pass == nil { since = newest }
        return true
    }
}

extension EconomicCursor: CustomStringConvertible {
    /// `changes SINCE CHOICES` or `changes SINCE CHOICES BEGAN NEWEST COUNT MARK PAGE`; earlier releases wrote no
    /// `COUNT MARK`.
    var description: String {
        let pass = pass.map { pass in
            " \(EconomicTime.text(pass.beganAt)) \(EconomicTime.text(pass.newest)) \(pass.trail.count)"
                + " \(pass.trail.mark) \(pass.page)"
        }
        return "changes \(EconomicTime.text(since)) \(choices.text)" + (pass ?? "")
    }

    /// Parses a description; `nil` if it is malformed.
    init?(_ text: String) {
        let parts = text.split(separator: " ", maxSplits: 7).map(String.init)
        guard parts.first == "changes", [3, 6, 8].contains(parts.count),
            let since = EconomicTime.seconds(parts[1]), let choices = UUID(uuidString: parts[2])
        else { return nil }
        (self.since, self.choices) = (since, choices)
        guard parts.count > 3 else { return }
        guard let beganAt = EconomicTime.seconds(parts[3]), let newest = EconomicTime.seconds(parts[4]) else {
            return nil
        }
        var trail = PageTrail()
        if parts.count == 8 {
            guard let count = Int(parts[5]), (0..<Int.max).contains(count) else { return nil }
            trail = PageTrail(count: count, mark: parts[6])
        }
        pass = Pass(beganAt: beganAt, newest: newest, page: parts[parts.count - 1], trail: trail)
    }
}

extension EconomicTime {
    /// `2015-03-30T12:00:00Z`
    static func text(_ seconds: Int) -> String {
        let day = Day(daysSinceEpoch: Int((Double(seconds) / 86_400).rounded(.down)))
        let clock = seconds - day.daysSinceEpoch * 86_400
        func padded(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return "\(day)T\(padded(clock / 3600)):\(padded(clock / 60 % 60)):\(padded(clock % 60))Z"
    }

    /// Parses a date and time to seconds since 1970, without fractions; UTC unless an offset is given.
    static func seconds(_ dateTime: String) -> Int? {
        (Timestamp(dateTime) ?? Timestamp(dateTime + "Z")).map { Int($0.millisecondsSinceEpoch / 1_000) }
    }
}
