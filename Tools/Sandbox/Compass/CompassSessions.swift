/// A record that a user edits.
struct CompassSession: Sendable {
    let user: String
    let number: Int
    let action: CompassSchema.Action
    /// The version at the begin; another one at the commit is a conflict. 0 for a new record.
    let version: Int
    let beganAtMs: Int64
    /// The values written so far.
    var values: [String: String]

    var isNew: Bool { version == 0 }
}

/// The edit sessions that are open: one per user and record. They lock nothing.
struct CompassSessions: Sendable {
    private struct Key: Hashable {
        let user: String
        let number: Int
    }

    private var open: [Key: CompassSession] = [:]

    /// In the order in which they were begun.
    var all: [CompassSession] {
        open.values.sorted { ($0.beganAtMs, $0.number, $0.user) < ($1.beganAtMs, $1.number, $1.user) }
    }

    subscript(user: String, number: Int) -> CompassSession? {
        get { open[Key(user: user, number: number)] }
        set { open[Key(user: user, number: number)] = newValue }
    }

    /// Ends expired sessions.
    mutating func endThose(begunBefore time: Int64) {
        if open.values.contains(where: { $0.beganAtMs < time }) { open = open.filter { $0.value.beganAtMs >= time } }
    }
}
