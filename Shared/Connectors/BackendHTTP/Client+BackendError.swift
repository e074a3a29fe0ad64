package import BackendProtocol
package import HTTPClient

extension Client {
    /// Sends a request without side effects. Every failure is `notProcessed`.
    package func read(_ request: Request) async throws(BackendError) -> Response {
        do throws(HTTPError) {
            return try await send(request)
        } catch {
            throw .notProcessed(reason: error.message, retryAfter: nil)
        }
    }

    /// Sends a request that may have side effects, once.
    package func write(_ request: Request) async throws(BackendError) -> Response {
        do throws(HTTPError) {
            return try await send(request)
        } catch {
            if error.missedSendDeadline { throw .deadlineExceeded }
            switch error.outcome {
            case .notSent: throw .notProcessed(reason: error.message, retryAfter: nil)
            case .maybeSent: throw .outcomeUnknown(reason: error.message)
            }
        }
    }
}
