package import BackendProtocol
package import HTTPClient

extension Client {
    /// Sends a request that changes nothing, so that its outcome does not matter.
    package func read(_ request: Request) async throws(BackendError) -> Response {
        do throws(HTTPError) {
            return try await send(request)
        } catch {
            throw .notProcessed(reason: error.message, retryAfter: nil)
        }
    }

    /// Sends a request that may change something, once.
    package func write(_ request: Request) async throws(BackendError) -> Response {
        do throws(HTTPError) {
            return try await send(request)
        } catch {
            if error.isTooLate { throw .tooLate }
            switch error.outcome {
            case .notSent: throw .notProcessed(reason: error.message, retryAfter: nil)
            case .maybeSent: throw .outcomeUnknown(reason: error.message)
            }
        }
    }
}
