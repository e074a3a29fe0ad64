import Essentials

/// A line of a tracker's file: a bug of Bugzilla or an issue of Jira, as far as it is used.
struct TrackedDefect: Decodable {
    struct Person: Decodable {
        let id: String
        let name: String?
    }

    struct Entry: Decodable {
        let when: Timestamp
        let who: Person
        let changes: [Change]
    }

    struct Change: Decodable {
        let field: String
        let from: String?
        let to: String?
    }

    let key: String?
    let id: Int
    let project: String?
    let product: String?
    let component: String?
    let components: [String]?
    let headline: String?
    let description: String?
    let severity: String?
    let priority: String?
    let status: String?
    let resolution: String?
    /// Jira writes `+0000`, which is not RFC 3339.
    let created: String?
    let resolved: String?
    let updated: String?
    let submitter: Person?
    let owner: Person?
    let history: [Entry]?

    var name: String { key ?? "\(project ?? product ?? "") \(id)" }

    var people: [Person] { [submitter, owner].compactMap(\.self) + (history ?? []).map(\.who) + mentioned }

    /// Former owners, who may have no other role.
    private var mentioned: [Person] {
        (history ?? []).flatMap(\.changes).filter { $0.field == "assigned_to" }
            .flatMap { [$0.from, $0.to] }.compactMap { $0 }.filter { !$0.isEmpty }.map { Person(id: $0, name: nil) }
    }

    /// The changes in order: the creation with its values, and each entry of the history. Without a history, one change
    /// to the current state and owner.
    func changes() throws(EmulatorError) -> [CompassChange] {
        let entries = (history ?? []).sorted { $0.when < $1.when }
        var values = now
        for change in entries.reversed().flatMap({ $0.changes.reversed() }) {
            if let (field, value) = TrackedValue.of(change.field, change.from ?? "") { values[field] = value }
        }
        guard let began = time(created) ?? entries.first.map({ $0.when.adding(.seconds(-3_600)) }) else {
            throw EmulatorError("\(name) has no time")
        }
        let maker = submitter?.id ?? entries.first?.who.id ?? "unknown"
        if history == nil, let end = time(resolved ?? updated), end > began {
            var first = values
            first["Resolution"] = nil
            let hasGoneOn = values["State"] != "Submitted"
            let made = CompassChange(user: maker, state: "Submitted", fields: Self.stated(first), at: began)
            guard hasGoneOn else { return [made] }
            let last = CompassChange(
                user: owner?.id ?? maker, action: TrackedValue.action(to: values["State"] ?? "", from: "Submitted"),
                state: values["State"], fields: ["Resolution": values["Resolution"] ?? ""], at: end)
            return [made, last]
        }
        var changes = [CompassChange(user: maker, state: values["State"], fields: Self.stated(values), at: began)]
        for entry in entries { changes.append(change(entry, &values)) }
        return changes
    }

    private func change(_ entry: Entry, _ values: inout [String: String]) -> CompassChange {
        let before = values["State"] ?? "Submitted"
        var fields: [String: String] = [:]
        for change in entry.changes {
            if let (field, value) = TrackedValue.of(change.field, change.to ?? "") { fields[field] = value }
        }
        values.merge(fields) { $1 }
        let after = values["State"] ?? "Submitted"
        var action = after == before ? "Modify" : TrackedValue.action(to: after, from: before)
        // The new owner must be notified, independent of other changes at the same time.
        if let owner = fields["Owner"], !owner.isEmpty { action = "Assign" }
        return CompassChange(
            user: entry.who.id, action: action, state: after, fields: Self.stated(fields), at: entry.when)
    }

    /// Without the state, which is no field that is written.
    private static func stated(_ values: [String: String]) -> [String: String] { values.filter { $0.key != "State" } }

    /// The current values.
    private var now: [String: String] {
        var values = ["Headline": headline ?? name, "State": TrackedValue.state(status ?? "NEW")]
        values["Description"] = description
        values["Severity"] = TrackedValue.severity(severity ?? priority ?? "")
        values["Priority"] = TrackedValue.priority(priority ?? "")
        values["Resolution"] = resolution
        values["Owner"] = owner?.id
        values["Project"] = project ?? product
        values["Component"] = component ?? components?.first
        return values.filter { !$0.value.isEmpty }
    }

    private func time(_ text: String?) -> Timestamp? {
        text.flatMap { Timestamp($0.hasSuffix("+0000") ? String($0.dropLast(5)) + "Z" : $0) }
    }
}

/// Converts values of trackers to those of the schema.
enum TrackedValue {
    /// A field with its value; `nil` if the schema has no such field.
    static func of(_ field: String, _ value: String) -> (field: String, value: String)? {
        switch field {
        case "status", "bug_status": ("State", state(value))
        case "resolution": ("Resolution", value)
        case "assigned_to": ("Owner", value)
        case "severity", "bug_severity": ("Severity", severity(value))
        case "priority": ("Priority", priority(value))
        case "summary", "short_desc": ("Headline", value)
        case "component": ("Component", value)
        case "product": ("Project", value)
        default: nil
        }
    }

    static func state(_ text: String) -> String {
        switch text.uppercased() {
        case "ASSIGNED", "REOPENED", "IN PROGRESS": "Opened"
        case "RESOLVED", "IN REVIEW", "IN QE TEST": "Resolved"
        case "VERIFIED", "CLOSED": "Closed"
        default: "Submitted"
        }
    }

    /// The action of a change of state: that of the schema, or the nearest.
    static func action(to state: String, from old: String) -> String {
        switch state {
        case "Opened": old == "Closed" ? "Re_open" : old == "Resolved" ? "Reject" : "Open"
        case "Resolved": "Resolve"
        case "Closed": "Validate"
        default: "Modify"
        }
    }

    static func severity(_ text: String) -> String {
        switch text.lowercased() {
        case "blocker", "critical": CompassSchema.severities[0]
        case "major", "high": CompassSchema.severities[1]
        case "minor", "low": CompassSchema.severities[3]
        case "enhancement", "trivial": CompassSchema.severities[4]
        default: CompassSchema.severities[2]
        }
    }

    static func priority(_ text: String) -> String {
        switch text.lowercased() {
        case "p1", "critical": CompassSchema.priorities[0]
        case "p2", "high": CompassSchema.priorities[1]
        default: CompassSchema.priorities[2]
        }
    }
}
