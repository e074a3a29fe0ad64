package import BackendProtocol

/// A value of a back end (a token, a session, a listing) that all calls share. Concurrent calls that need a value, or
/// that were rejected with the same one, wait for the same new value.
package actor SharedFetch<Value: Sendable> {
    /// A value with its number.
    package struct Fetched: Sendable {
        package let value: Value
        /// Distinguishes successive values.
        fileprivate let number: Int
        fileprivate let beganAt: ContinuousClock.Instant
    }

    private typealias Fetch = Task<Result<Fetched, BackendError>, Never>

    private let load: @Sendable () async -> Result<Value, BackendError>
    private let ageMax: Duration?
    private let keepsRefusal: Bool
    private var refusal: BackendError?
    private var latest: Fetched?
    private var fetching: Fetch?
    private var count = 0

    /// - Parameters:
    ///   - ageMax: Maximum age of a value, from the beginning of its fetch; `nil`: it is valid until it is rejected.
    ///   - keepsRefusal: Whether an `unauthorized` fetch is final: all later calls throw the same error.
    ///   - load: Fetches a value; must time out by itself.
    package init(
        ageMax: Duration? = nil, keepsRefusal: Bool = false,
        _ load: @escaping @Sendable () async -> Result<Value, BackendError>
    ) {
        self.ageMax = ageMax
        self.keepsRefusal = keepsRefusal
        self.load = load
    }

    /// Returns the current value, or fetches one.
    package func current() async throws(BackendError) -> Fetched {
        while true {
            if let refusal { throw refusal }
            if let latest, ageMax.map({ ContinuousClock.now - latest.beganAt < $0 }) ?? true { return latest }
            let fetch = fetching ?? begin()
            let result = await withTaskCancellationHandler {
                await fetch.value
            } onCancel: {
                fetch.cancel()
            }
            // The fetch was cancelled by another call that shared it: fetch again.
            if case .failure = result, fetch.isCancelled, !Task.isCancelled { continue }
            return try result.get()
        }
    }

    /// Returns a value other than `rejected`.
    package func replacing(_ rejected: Fetched) async throws(BackendError) -> Fetched {
        if latest?.number == rejected.number { latest = nil }
        return try await current()
    }

    /// Removes and returns the current value; the next call fetches another one.
    package func remove() -> Value? {
        defer { latest = nil }
        return latest?.value
    }

    private func begin() -> Fetch {
        count += 1
        let beganAt = ContinuousClock.now
        let fetch = Task { [load, count] in
            let result = await load().map { Fetched(value: $0, number: count, beganAt: beganAt) }
            finish(result)
            return result
        }
        fetching = fetch
        return fetch
    }

    private func finish(_ result: Result<Fetched, BackendError>) {
        fetching = nil
        switch result {
        case .success(let fetched): latest = fetched
        case .failure(let error):
            if keepsRefusal, case .unauthorized = error { refusal = error }
        }
    }
}
