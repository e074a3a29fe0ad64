extension BackendError {
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
