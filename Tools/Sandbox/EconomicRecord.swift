import Essentials
import Model

/// A time entry as the sandbox keeps it, and as a line of its journal.
struct EconomicRecord: Codable, Equatable, Sendable {
    var number: Int
    var employeeNumber: Int
    var projectNumber: Int
    var activityNumber: Int
    var date: Day
    var numberOfHours: Double
    var text: String
    var isApproved = false
    var isReconciled = false
    var isDeleted = false
    /// Grows with every change; `objectVersion` names it.
    var version = 1
    /// Seconds since 1970 by the sandbox's own clock, which may be wrong.
    var lastUpdatedSeconds = 0
    /// Milliseconds since 1970, by a clock that is right, from which listings show this state.
    var visibleAtMs: Int64 = 0

    /// Opaque to clients.
    var objectVersion: String { "v\(number).\(version)" }

    var dateTime: String { "\(date)T00:00:00Z" }

    var lastUpdated: String {
        "\(Timestamp(millisecondsSinceEpoch: Int64(lastUpdatedSeconds) * 1_000).description.prefix(19))Z"
    }
}

/// The body of a POST or a PUT.
struct EconomicEntryRequest: Decodable, Sendable {
    var number: Int?
    var employeeNumber: Int?
    var projectNumber: Int?
    var activityNumber: Int?
    var date: String?
    var numberOfHours: Double?
    var text: String?
    var objectVersion: String?

    var day: Day? { date.flatMap { Day(String($0.prefix(10))) } }
}

/// All time entries, each with the states that a listing may still show.
struct EconomicRecords {
    /// Number − 1 is the index; the newest state is the last.
    private var states: [[EconomicRecord]] = []
    private var byEmployee: [Int: [Int]] = [:]

    /// Of entries, deleted ones too.
    var count: Int { states.count }

    var nextNumber: Int { states.count + 1 }

    /// The newest state, which may be that the entry is deleted.
    subscript(number: Int) -> EconomicRecord? {
        states.indices.contains(number - 1) ? states[number - 1].last : nil
    }

    /// The entry as a listing shows it at a time; `nil` if it is not yet visible, or deleted.
    func shown(_ number: Int, atMs time: Int64) -> EconomicRecord? {
        guard states.indices.contains(number - 1),
            let state = states[number - 1].last(where: { $0.visibleAtMs <= time })
        else { return nil }
        return state.isDeleted ? nil : state
    }

    /// Adds an entry, or a newer state of it. Its employee stays the same.
    mutating func put(_ record: EconomicRecord, nowMs: Int64) {
        guard self[record.number] != nil else {
            precondition(record.number == nextNumber, "numbers have no gaps")
            states.append([record])
            byEmployee[record.employeeNumber, default: []].append(record.number)
            return
        }
        // Of the states that are visible only the newest is ever shown.
        let visible = states[record.number - 1].lastIndex { $0.visibleAtMs <= nowMs } ?? 0
        states[record.number - 1].removeFirst(visible)
        states[record.number - 1].append(record)
    }

    /// Numbers that can match, in their order, from `first` on.
    func numbers(ofEmployee employee: Int?, from first: Int) -> [Int] {
        guard let employee else { return Array(max(1, first)..<max(nextNumber, first, 1)) }
        return (byEmployee[employee] ?? []).filter { $0 >= first }
    }
}
