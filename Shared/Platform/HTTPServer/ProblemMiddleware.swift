import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Limits the request's body, and converts thrown errors to problem details.
struct ProblemMiddleware: RouterMiddleware {
    let bodyBytesMax: Int

    @concurrent func handle(
        _ request: Request, context: EdgeContext, next: @concurrent (Request, EdgeContext) async throws -> Response
    ) async throws -> Response {
        do {
            if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bodyBytesMax {
                throw Problem.bodyTooLarge(bodyBytesMax)
            }
            var request = request
            request.body = RequestBody(
                asyncSequence: BoundedBody(
                    body: request.body, bytesMax: bodyBytesMax,
                    channel: request.headers[.expect] == nil ? nil : context.channel))
            return try await next(request, context)
        } catch {
            return problem(for: error, context: context).response(from: request, context: context)
        }
    }

    private func problem(for error: any Error, context: EdgeContext) -> Problem {
        switch error {
        case let problem as Problem:
            return problem
        case let error as HTTPError:
            return Problem(error.status, detail: error.body, headers: error.headers)
        case let error as any HTTPResponseError:
            return Problem(error.status)
        case let error as BrokenBody:
            // A client's disconnect or malformed input needs no action by an operator.
            context.logger.debug("request body not received", error: error.cause)
            return .malformedRequest
        case is CancellationError:
            return Problem(.serviceUnavailable, detail: "The server is shutting down.")
        default:
            context.logger.error("request failed", error: error)
            // The request id of the log line. (`context.id` traps if the log handler stores no metadata.)
            let id = context.logger[metadataKey: "hb.request.id"].map { "urn:fieldpost:request:\($0)" }
            return Problem(.internalServerError, instance: id)
        }
    }
}

/// The body was not received completely: the client disconnected, or its input is malformed.
private struct BrokenBody: Error {
    let cause: any Error
}

/// Signals that the route reads the body of a request.
struct ContinueEvent: Sendable {}

/// A request body that throws a problem when it exceeds its limit.
struct BoundedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let bytesMax: Int
    /// The connection of a client that waits for `100 Continue`, which the first read sends.
    let channel: (any Channel)?

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        var bytesLeft: Int
        let bytesMax: Int
        var channel: (any Channel)?

        @concurrent mutating func next() async throws -> ByteBuffer? {
            channel?.triggerUserOutboundEvent(ContinueEvent(), promise: nil)
            channel = nil
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
        AsyncIterator(base: body.makeAsyncIterator(), bytesLeft: bytesMax, bytesMax: bytesMax, channel: channel)
    }
}
