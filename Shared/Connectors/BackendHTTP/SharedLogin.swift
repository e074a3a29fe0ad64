package import BackendProtocol

/// A login to a back end (a token, a session) that all calls share. Concurrent calls that need a login, or that were
/// rejected with the same one, wait for the same new login.
package actor SharedLogin<Login: Sendable> {
    /// A login with its generation.
    package struct Issued: Sendable {
        package let login: Login
        /// Distinguishes successive logins.
        fileprivate let number: Int
    }

    private typealias Fetch = Task<Result<Issued, BackendError>, Never>

    private let logIn: @Sendable () async -> Result<Login, BackendError>
    private let keepsRefusal: Bool
    private var refusal: BackendError?
    private var issued: Issued?
    private var fetching: Fetch?
    private var count = 0

    /// - Parameters:
    ///   - keepsRefusal: Whether an `unauthorized` login is final: all later calls throw the same error.
    ///   - logIn: Logs in; must time out by itself.
    package init(
        keepsRefusal: Bool = false, _ logIn: @escaping @Sendable () async -> Result<Login, BackendError>
    ) {
        self.keepsRefusal = keepsRefusal
        self.logIn = logIn
    }

    /// Returns the current login, or logs in.
    package func current() async throws(BackendError) -> Issued {
        while true {
            if let refusal { throw refusal }
            if let issued { return issued }
            let fetch = fetching ?? begin()
            let result = await withTaskCancellationHandler {
                await fetch.value
            } onCancel: {
                fetch.cancel()
            }
            // The login was cancelled by another call that shared it: log in again.
            if case .failure = result, fetch.isCancelled, !Task.isCancelled { continue }
            return try result.get()
        }
    }

    /// Returns a login other than `rejected`.
    package func replacing(_ rejected: Issued) async throws(BackendError) -> Issued {
        if issued?.number == rejected.number { issued = nil }
        return try await current()
    }

    /// Removes and returns the current login; the next call logs in.
    package func removeLogin() -> Login? {
        defer { issued = nil }
        return issued?.login
    }

    private func begin() -> Fetch {
        count += 1
        let fetch = Task { [logIn, count] in
            let result = await logIn().map { Issued(login: $0, number: count) }
            finish(result)
            return result
        }
        fetching = fetch
        return fetch
    }

    private func finish(_ result: Result<Issued, BackendError>) {
        fetching = nil
        switch result {
        case .success(let login): issued = login
        case .failure(let error):
            if keepsRefusal, case .unauthorized = error { refusal = error }
        }
    }
}
