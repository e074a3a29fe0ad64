extension BackendError: CustomStringConvertible {
    /// In words, for whoever looks after a back end.
    public var description: String {
        switch self {
        case .refused(let messages): "it refuses that: \(messages.joined(separator: "; "))"
        case .notProcessed(let reason, _): "it does nothing at the moment: \(reason)"
        case .outcomeUnknown(let reason, _): "it may have done it or not: \(reason)"
        case .tooLate: "it was not asked: the time was over"
        case .unauthorized(let reason): "it refuses the credentials: \(reason)"
        }
    }
}

extension BackendError {
    /// The error, without its consequence.
    package var reason: String {
        switch self {
        case .refused(let messages): messages.joined(separator: "; ")
        case .notProcessed(let reason, _), .outcomeUnknown(let reason, _), .unauthorized(let reason): reason
        case .tooLate: "the time was over"
        }
    }

    /// When a read that failed like that is tried again.
    ///
    /// - Returns: `nil` when the back end refuses it: no repetition helps. `asked`: for how long the back end asks to
    ///   be left alone.
    package func retry(afterAttempts attemptCount: Int) -> (reason: String, wait: Duration, asked: Duration?)? {
        let wait = min(Duration.seconds(1) * (1 << min(attemptCount, 6)), .seconds(60))
        return switch self {
        // A read is never too late.
        case .refused, .tooLate: nil
        case .notProcessed(let reason, let retryAfter), .outcomeUnknown(let reason, let retryAfter):
            (reason, max(wait, retryAfter ?? .zero), retryAfter)
        case .unauthorized(let reason): (reason, wait, nil)
        }
    }
}
