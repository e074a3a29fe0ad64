import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model

/// Where a run goes on with reading everybody's records: days are read from the last one back.
struct ListingCursor: Equatable, CustomStringConvertible {
    let run: Int64
    /// This day and those after it are read and written.
    let day: Day

    /// The days that a run has not read yet; `nil` when it has read all of them. One that was broken off goes on, a new
    /// one begins anew, whatever became of the one before.
    static func rest(of days: ClosedRange<Day>, since cursor: String?, run: Int64) -> ClosedRange<Day>? {
        guard let known = cursor.flatMap(ListingCursor.init), known.run == run else { return days }
        let last = min(known.day.adding(days: -1), days.upperBound)
        return last < days.lowerBound ? nil : days.lowerBound...last
    }

    /// `listing RUN DAY`
    var description: String { "listing \(run) \(day)" }
}

extension ListingCursor {
    /// Reads a description; `nil` when it is none.
    init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "listing", let run = Int64(parts[1]), let day = Day(String(parts[2])) else {
            return nil
        }
        self.init(run: run, day: day)
    }
}

/// What a listing of everybody says of one person.
enum ListingRule {
    enum Finding: Equatable {
        /// Records that differ from what was seen of them, by entry; mostly there are none.
        case put([UUID: SeenRecord])
        /// A record is not where it was seen, or another one claims its place. What that means is seen by all of the
        /// person's records alone: it may be gone, on a day that was read before, or have a successor anywhere.
        case doubtful
    }

    /// - Parameters:
    ///   - known: What was seen before: all of `days`, and of the records in `found` whatever day they were of.
    ///   - found: The person's records of `days`.
    static func compare(
        known: [UUID: SeenRecord], found: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> Finding {
        var put: [UUID: SeenRecord] = [:]
        var ids: Set<UUID> = []
        for entry in found {
            let id = RealmContents.entryID(of: entry, of: email)
            guard ids.insert(id).inserted else { return .doubtful }
            let before = known[id]
            if let before, before.backendId != entry.id, !isCancelled(before) { return .doubtful }
            var record = SeenRecord(entry)
            record.toldRun = before?.toldRun
            if record != before { put[id] = record }
        }
        let isMissing = known.contains { id, record in
            !ids.contains(id) && days.contains(record.day) && !isCancelled(record)
        }
        return isMissing ? .doubtful : .put(put)
    }

    /// What all of a person's records change.
    ///
    /// - Parameter known: What was seen before, of the same days and records.
    static func changes(
        known: [UUID: SeenRecord], all: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> PollRule.Changes {
        var changes = PollRule.changes(known: known, found: all, days: days, email: email)
        // That one was never there is the full comparison's to say, and to take back.
        changes.gone = changes.gone.filter { known[$0].map { !isCancelled($0) } ?? true }
        return changes
    }

    private static func isCancelled(_ record: SeenRecord) -> Bool {
        record.status == BackendStatus.cancelled.rawValue
    }
}
