extension BackendError: CustomStringConvertible {
    /// The error with its effect, for an operator.
    public var description: String {
        switch self {
        case .refused(let messages): "request rejected: \(messages.joined(separator: "; "))"
        case .notProcessed(let reason, _): "request not processed: \(reason)"
        case .outcomeUnknown(let reason, _): "outcome unknown: \(reason)"
        case .deadlineExceeded: "request not sent: its deadline has passed"
        case .unauthorized(let reason): "credentials rejected: \(reason)"
        }
    }
}

extension BackendError {
    /// The reason alone, without the effect.
    package var reason: String {
        switch self {
        case .refused(let messages): messages.joined(separator: "; ")
        case .notProcessed(let reason, _), .outcomeUnknown(let reason, _), .unauthorized(let reason): reason
        case .deadlineExceeded: "the deadline has passed"
        }
    }

    /// Returns the delay before the next attempt of a failed read: it doubles with each attempt, up to 60 s, and is at
    /// least the back end's `Retry-After`.
    ///
    /// - Returns: `nil` if the back end refuses the read, so that a retry cannot succeed.
    package func retry(afterAttempts attemptCount: Int) -> (reason: String, wait: Duration, retryAfter: Duration?)? {
        let wait = min(Duration.seconds(1) * (1 << min(attemptCount, 6)), .seconds(60))
        return switch self {
        // Reads have no deadline.
        case .refused, .deadlineExceeded: nil
        case .notProcessed(let reason, let retryAfter), .outcomeUnknown(let reason, let retryAfter):
            (reason, max(wait, retryAfter ?? .zero), retryAfter)
        case .unauthorized(let reason): (reason, wait, nil)
        }
    }
}
