import Model

/// What a person reads in their choice of what went wrong.
enum ProblemRule {
    /// - Parameters:
    ///   - stored: What they read now.
    ///   - objection: What of the choice cannot be done.
    ///   - working: Ways that have just worked.
    static func problem(stored: String?, new: String?, objection: String?, working: Set<Way>) -> String? {
        if let new { return new }
        if let objection { return objection }
        guard let stored, !stored.hasPrefix("choice: "),
            !working.contains(where: { stored.hasPrefix($0.rawValue + ": ") })
        else { return nil }
        return stored
    }
}
