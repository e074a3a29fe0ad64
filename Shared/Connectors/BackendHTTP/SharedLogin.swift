package import BackendProtocol

/// What a back end gives at a login (a token, a session), one for all calls at a time: calls that need one together
/// wait for the same login, and those that were refused together for the same new one.
package actor SharedLogin<Login: Sendable> {
    /// A login that was held when it was asked for.
    package struct Held: Sendable {
        package let login: Login
        /// Tells logins apart.
        fileprivate let number: Int
    }

    private typealias Fetch = Task<Result<Held, BackendError>, Never>

    private let logIn: @Sendable () async -> Result<Login, BackendError>
    private let keepsRefusal: Bool
    private var refusal: BackendError?
    private var held: Held?
    private var fetching: Fetch?
    private var count = 0

    /// - Parameters:
    ///   - keepsRefusal: After a login that was `unauthorized` there is no other one: all calls get that error.
    ///   - logIn: Ends within a bound of its own.
    package init(
        keepsRefusal: Bool = false, _ logIn: @escaping @Sendable () async -> Result<Login, BackendError>
    ) {
        self.keepsRefusal = keepsRefusal
        self.logIn = logIn
    }

    /// The login that is held, or a new one.
    package func current() async throws(BackendError) -> Held {
        while true {
            if let refusal { throw refusal }
            if let held { return held }
            let fetch = fetching ?? begin()
            let result = await withTaskCancellationHandler {
                await fetch.value
            } onCancel: {
                fetch.cancel()
            }
            // It ended because another call was cancelled that had asked for it: this one asks again.
            if case .failure = result, fetch.isCancelled, !Task.isCancelled { continue }
            return try result.get()
        }
    }

    /// A login other than `refused`.
    package func replacing(_ refused: Held) async throws(BackendError) -> Held {
        if held?.number == refused.number { held = nil }
        return try await current()
    }

    /// Lets go of the login; the next call begins with a new one.
    package func forget() -> Login? {
        defer { held = nil }
        return held?.login
    }

    private func begin() -> Fetch {
        count += 1
        let fetch = Task { [logIn, count] in
            let result = await logIn().map { Held(login: $0, number: count) }
            finish(result)
            return result
        }
        fetching = fetch
        return fetch
    }

    private func finish(_ result: Result<Held, BackendError>) {
        fetching = nil
        switch result {
        case .success(let login): held = login
        case .failure(let error):
            if keepsRefusal, case .unauthorized = error { refusal = error }
        }
    }
}
