import Model

/// The notices and mirrors that people must have, evaluated directly from the tracker's history.
struct DefectReading: Sendable {
    /// A notice as a person reads it.
    struct NoticeContent: Hashable, Comparable, Sendable {
        let code: String
        let text: String

        static func < (one: NoticeContent, other: NoticeContent) -> Bool {
            (one.text, one.code) < (other.text, other.code)
        }
    }

    /// By login, in no order.
    private(set) var notices: [String: [NoticeContent]] = [:]
    /// By login and record.
    private(set) var mirrors: [String: [String: Defect]] = [:]

    /// The actions and their users, in order, by headline.
    private(set) var actions: [String: [String]] = [:]

    /// - Parameter people: The logins of the people to evaluate.
    init(_ history: [SandboxCompass.Line], people: Set<String>) {
        var records: [String: Defect] = [:]
        var deleted: Set<String> = []
        for line in history.sorted(by: { $0.number < $1.number }) {
            actions[line.headline, default: []].append("\(line.action) by \(line.user)")
            let isAssigned = line.action == "Submit" || line.action == "Assign"
            if people.contains(line.owner), line.owner != line.user {
                notices[line.owner, default: []].append(
                    NoticeContent(
                        code: isAssigned ? "defect-assigned" : "defect-modified",
                        text: "\(line.record) (\(line.headline)) has been "
                            + (isAssigned ? "assigned to you" : "modified")))
            }
            var defect = records[line.record] ?? Defect(record: line.record, headline: "")
            if records[line.record] == nil { (defect.submitter, defect.submitDate) = (line.user, line.timestamp) }
            defect.headline = line.headline
            defect.state = line.newState
            defect.owner = line.owner.isEmpty ? nil : line.owner
            defect.severity = line.changes["Severity"] ?? defect.severity
            defect.priority = line.changes["Priority"] ?? defect.priority
            records[line.record] = defect
            if line.isDeleted { deleted.insert(line.record) }
        }
        for (record, defect) in records where !deleted.contains(record) {
            for login in Set([defect.owner, defect.submitter].compactMap(\.self)) where people.contains(login) {
                var mirror = defect
                mirror.isAssignedToMe = login == defect.owner
                mirror.isReportedByMe = login == defect.submitter
                mirrors[login, default: [:]][record] = mirror
            }
        }
    }

    var noticeCount: Int { notices.values.reduce(0) { $0 + $1.count } }
}
