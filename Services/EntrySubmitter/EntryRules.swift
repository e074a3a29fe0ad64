import BackendProtocol
import Essentials
import FoundationEssentials
import Model

/// What a back end may be asked to record: the checks that need nothing but the person's own reporting data.
enum EntryRules {
    /// The longest entry in seconds: 24 hours.
    static let durationSecondsMax = 86_400

    /// The nodes that count for one context of an entry.
    struct Selection: Equatable, Sendable {
        /// The context's id.
        let context: UUID
        /// The context's name.
        let name: String
        /// The nodes' ids: those the entry selects, or the context's preselected ones when it selects none.
        let nodes: [UUID]
    }

    /// What keeps the entry from being submitted, each problem a sentence for the person who wrote the entry.
    ///
    /// - Parameter textLimit: The longest text that the back end keeps.
    /// - Returns: No problem when the entry can be submitted. The order is stable: template, contexts in the template's
    ///   order, selections beside them, time, text.
    static func problems(
        of entry: TimeEntry, in objects: ReportingObjects,
        textLimit: TextLimit = TextLimit(TimeEntry.submittedTextLengthMax, .utf16)
    ) -> [String] {
        reportingProblems(of: entry, in: objects) + timeProblems(of: entry)
            + [entry.text.flatMap(textLimit.problem)].compactMap(\.self)
    }

    /// The entry's length in seconds; `nil` when the fields its time type needs are missing.
    static func seconds(of entry: TimeEntry) -> Int? {
        switch entry.timeType {
        case .duration: return entry.durationSeconds
        case .interval:
            guard let start = entry.startTime, let end = entry.endTime else { return nil }
            return start.seconds(until: end)
        }
    }

    /// The nodes that count, per context of the entry's template, in the template's order.
    ///
    /// Contexts that are unknown, or have neither a selection nor preselected nodes, are left out.
    static func selections(of entry: TimeEntry, in objects: ReportingObjects) -> [Selection] {
        let template = entry.reportingTemplate.flatMap { objects.templates[$0] }
        return (template?.reportingContexts ?? []).compactMap { id in
            guard let context = objects.contexts[id] else { return nil }
            let selected = entry.reporting.filter { $0.context == id }.map(\.node)
            let nodes = selected.isEmpty ? context.preselected : selected
            return nodes.isEmpty ? nil : Selection(context: id, name: context.name, nodes: nodes)
        }
    }

    private static func timeProblems(of entry: TimeEntry) -> [String] {
        var problems = entry.entryDate == nil ? ["Date is missing"] : []
        switch entry.timeType {
        case .duration:
            guard let seconds = entry.durationSeconds else { return problems + ["Duration is missing"] }
            problems += lengthProblems(seconds)
        case .interval:
            if entry.startTime == nil { problems.append("Start time is missing") }
            if entry.endTime == nil { problems.append("End time is missing") }
            guard let seconds = seconds(of: entry) else { return problems }
            problems += seconds > 0 ? lengthProblems(seconds) : ["End time must be after start time"]
        }
        return problems
    }

    private static func lengthProblems(_ seconds: Int) -> [String] {
        guard seconds > 0 else { return ["Duration must be more than 0"] }
        guard seconds <= durationSecondsMax else { return ["Duration must be at most 24 hours"] }
        guard Hours(seconds: seconds).hundredths > 0 else { return ["Duration must be at least 0.01 hours"] }
        return []
    }
}
