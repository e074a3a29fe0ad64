import Model

/// The problem that is reported in a person's choice.
enum DeliveryProblemRule {
    /// - Parameters:
    ///   - stored: The currently reported problem.
    ///   - choiceError: The part of the choice that is unavailable.
    ///   - working: Channels that have just worked.
    static func problem(stored: String?, new: String?, choiceError: String?, working: Set<Channel>) -> String? {
        if let new { return new }
        if let choiceError { return choiceError }
        guard let stored, !stored.hasPrefix("choice: "),
            !working.contains(where: { stored.hasPrefix($0.rawValue + ": ") })
        else { return nil }
        return stored
    }
}
