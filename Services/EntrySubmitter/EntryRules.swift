import BackendProtocol
import Model

/// Validation of entries against the person's own reporting data.
enum EntryRules {
    /// Maximum length of an entry in seconds: 24 hours.
    static let durationSecondsMax = 86_400

    /// Returns the problems that prevent the submission, each a sentence for the person who wrote the entry.
    ///
    /// - Parameter textLimit: The maximum length of a text in the back end.
    /// - Returns: Empty if the entry can be submitted. The order is stable: template, contexts in the template's order,
    ///   selections outside the template, time, text.
    static func problems(
        of entry: TimeEntry, in objects: ReportingObjects,
        textLimit: TextLimit = TextLimit(TimeEntry.submittedTextLengthMax, .utf16)
    ) -> [String] {
        objects.problems(of: entry).map(\.message) + timeProblems(of: entry)
            + [entry.text.flatMap(textLimit.problem)].compactMap(\.self)
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
            guard let seconds = entry.seconds else { return problems }
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
