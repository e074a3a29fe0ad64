import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Bounds the request's body, and turns what a route throws into a problem.
struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    let bodyBytesMax: Int

    @concurrent func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bodyBytesMax {
                throw Problem.bodyTooLarge(bodyBytesMax)
            }
            var request = request
            request.body = RequestBody(
                asyncSequence: BoundedBody(body: request.body, bytesMax: bodyBytesMax))
            return try await next(request, context)
        } catch {
            return problem(for: error, context: context).response(from: request, context: context)
        }
    }

    private func problem(for error: any Error, context: Context) -> Problem {
        switch error {
        case let problem as Problem:
            return problem
        case let error as HTTPError:
            return Problem(error.status, detail: error.body, headers: error.headers)
        case let error as any HTTPResponseError:
            return Problem(error.status)
        case let error as BrokenBody:
            // A client that hangs up or sends nonsense is nothing that an operator could mend.
            context.logger.debug("a request's body did not come", error: error.cause)
            return .malformedRequest
        case is CancellationError:
            return Problem(.serviceUnavailable, detail: "The server is shutting down.")
        default:
            context.logger.error("request failed", error: error)
            // The number that the log line has too. (`context.id` traps when the log handler keeps no metadata.)
            let id = context.logger[metadataKey: "hb.request.id"].map { "urn:fieldpost:request:\($0)" }
            return Problem(.internalServerError, instance: id)
        }
    }
}

/// A request's body did not come whole: the client hung up, or what it sent is not HTTP.
private struct BrokenBody: Error {
    let cause: any Error
}

/// A request's body that ends with a problem instead of growing past its bound.
struct BoundedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let bytesMax: Int

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        var bytesLeft: Int
        let bytesMax: Int

        @concurrent mutating func next() async throws -> ByteBuffer? {
            let next: ByteBuffer?
            do {
                next = try await base.next()
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                throw BrokenBody(cause: error)
            }
            guard let buffer = next else { return nil }
            bytesLeft -= buffer.readableBytes
            guard bytesLeft >= 0 else { throw Problem.bodyTooLarge(bytesMax) }
            return buffer
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: body.makeAsyncIterator(), bytesLeft: bytesMax, bytesMax: bytesMax)
    }
}
