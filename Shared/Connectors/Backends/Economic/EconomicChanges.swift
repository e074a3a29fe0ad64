internal import BackendHTTP
package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

extension EconomicBackend {
    /// Reads by `lastUpdated`, one page a call, in the order of the entries' numbers: an entry that changes meanwhile
    /// stays where it is, and what is changed behind the page that is read has a time stamp that the next pass reads.
    ///
    /// When a page's cursor is refused, or pages go in a circle, the pass is over, and the next one begins where it
    /// did; not at once, since it may come to the same end.
    ///
    /// An entry that cannot be read is left out, and reported. At the end of a pass the listings that are everybody's
    /// choices are read too, since they cannot be queried for changes.
    package func changes(
        of people: [BackendPerson], since text: String?
    ) async throws(BackendError) -> BackendChanges {
        guard var cursor = text.flatMap(EconomicCursor.init) else {
            guard let page = try await page("number$eq:0", cursor: nil) else {
                throw .notProcessed(reason: "the first page is refused", retryAfter: nil)
            }
            let cursor = EconomicCursor(since: page.time, choices: try await listings.choices().digest)
            return BackendChanges(changes: [], cursor: cursor.description, hasMore: false)
        }
        let overlapSeconds = Int(connection.settings.changesOverlap.components.seconds)
        let filter = "lastUpdated$gte:" + EconomicTime.text(cursor.since - overlapSeconds)
        guard let page = try await page(filter, cursor: cursor.pass?.page) else {
            cursor.pass = nil
            return BackendChanges(
                changes: [], cursor: cursor.description, hasMore: false, problem: "the cursor of a page is refused")
        }
        let found = ListedRows(page.rows, of: EconomicBackend.entries)
        let stamps = found.rows.compactMap { $0.lastUpdated.flatMap(EconomicTime.seconds) }
        let isWhole = cursor.read(newest: stamps.max(), at: page.time, next: page.next)
        var emails: [Int: [String]] = [:]
        for person in people {
            guard let employee = try? EconomicBackend.employee(person) else { continue }
            emails[employee, default: []].append(person.email)
        }
        let ofPeople = found.rows.filter { emails[$0.employeeNumber] != nil }
        var changes: [BackendChanges.Change] = []
        let records = BackendRecords(
            ofPeople, of: EconomicBackend.entries, found.unreadable, id: { String($0.number) }
        ) { row throws(BackendError) in
            let entry = try BackendEntry(row, names)
            changes += (emails[row.employeeNumber] ?? []).map { BackendChanges.Change(person: $0, entry: entry) }
            return entry
        }
        if !isWhole, let next = page.next {
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
            throw .notProcessed(reason: "an answer without the time (Date) by e-conomic's clock", retryAfter: nil)
        }
        return (page.rows, page.next, time)
    }
}

/// Where the reading of changes goes on. All times are e-conomic's own, in seconds since 1970.
struct EconomicCursor: Equatable {
    /// A reading of all changes since then, page by page.
    struct Pass: Equatable {
        /// When its first page was answered.
        var beganAt: Int
        /// The largest `lastUpdated` that was read, but no later than `beganAt`.
        var newest: Int
        /// The next page's cursor.
        var page: String
        /// The cursors before it.
        var trail: PageTrail
    }

    /// What was changed up to then is read, but for what the overlap is for.
    var since: Int
    /// Names what everybody could report on then.
    var choices: UUID
    /// `nil` when it is done: a new one begins.
    var pass: Pass?

    /// A page was read.
    ///
    /// At the end of a pass the next one begins where the time stamps ended. What was changed during the pass may have
    /// been behind the page that was read, so it begins no later than this one did.
    ///
    /// - Parameters:
    ///   - newest: The largest `lastUpdated` on it.
    ///   - time: When it was answered.
    ///   - next: The next page's cursor.
    /// - Returns: False when the next page was read before: then the pass counts for nothing.
    mutating func read(newest: Int?, at time: Int, next: String?) -> Bool {
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

    /// Reads a description; `nil` when it is none.
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

    /// Seconds since 1970, fractions cut off; in UTC where no offset is named.
    static func seconds(_ dateTime: String) -> Int? {
        (Timestamp(dateTime) ?? Timestamp(dateTime + "Z")).map { Int($0.millisecondsSinceEpoch / 1_000) }
    }
}
