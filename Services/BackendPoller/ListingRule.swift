import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model

/// The position of a run in a bulk listing, which is read from the last day backwards.
struct ListingCursor: Equatable, CustomStringConvertible {
    let run: Int64
    /// This day and later ones are read and written.
    let day: Day

    /// Returns the days that a run has not read yet; `nil` if it has read all. An interrupted run resumes; a new run
    /// starts from the last day.
    static func remaining(of days: ClosedRange<Day>, since cursor: String?, run: Int64) -> ClosedRange<Day>? {
        guard let cursor = cursor.flatMap(ListingCursor.init), cursor.run == run else { return days }
        let last = min(cursor.day.adding(days: -1), days.upperBound)
        return last < days.lowerBound ? nil : days.lowerBound...last
    }

    /// `listing RUN DAY`
    var description: String { "listing \(run) \(day)" }
}

extension ListingCursor {
    /// Parses a description; `nil` if it is malformed.
    init?(_ text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "listing", let run = Int64(parts[1]), let day = Day(String(parts[2])) else {
            return nil
        }
        self.init(run: run, day: day)
    }
}

/// Compares a person's part of a bulk listing with the stored observations.
enum ListingRule {
    enum Comparison: Equatable {
        /// Records that differ from their observation, by entry; usually none.
        case put([UUID: SeenRecord])
        /// An observed record is missing, or another one carries its marker. All records of the person must be read:
        /// the record may be deleted, on a day that was read before, or replaced.
        case inconclusive
    }

    /// - Parameters:
    ///   - known: The observations of `days`, and of all records in `found`.
    ///   - found: The person's records of `days`.
    static func compare(
        known: [UUID: SeenRecord], found: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> Comparison {
        var put: [UUID: SeenRecord] = [:]
        var ids: Set<UUID> = []
        for entry in found {
            let id = RealmContents.entryID(of: entry, of: email)
            guard ids.insert(id).inserted else { return .inconclusive }
            let before = known[id]
            if let before, before.backendId != entry.id, !isCancelled(before) { return .inconclusive }
            var record = SeenRecord(entry)
            record.toldRun = before?.toldRun
            if record != before { put[id] = record }
        }
        let isMissing = known.contains { id, record in
            !ids.contains(id) && days.contains(record.day) && !isCancelled(record)
        }
        return isMissing ? .inconclusive : .put(put)
    }

    /// Compares all records of a person.
    ///
    /// - Parameter known: The observations of the same days and records.
    static func changes(
        known: [UUID: SeenRecord], all: [BackendEntry], days: ClosedRange<Day>, email: String
    ) -> PollRule.Changes {
        var changes = PollRule.changes(known: known, found: all, days: days, email: email)
        // Only the full comparison reports records that never existed, and retracts such reports.
        changes.gone = changes.gone.filter { known[$0].map { !isCancelled($0) } ?? true }
        return changes
    }

    private static func isCancelled(_ record: SeenRecord) -> Bool {
        record.status == BackendStatus.cancelled.rawValue
    }
}
