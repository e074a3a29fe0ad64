import Essentials
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// Responds to each request, in a task of its own.
///
/// A connection's task retains the memory of its deepest call stack until it ends, even while it waits for the next
/// change of a live stream. Request processing in that task took a third of such a connection's memory.
///
/// It replaces Hummingbird's `Application`, which wakes an idle process once a second to format the `Date` field.
struct RequestResponder<Inner: HTTPResponder>: Sendable where Inner.Context == EdgeContext {
    let inner: Inner
    let logger: Logger
    private let date = DateField()

    init(_ inner: Inner, logger: Logger) { (self.inner, self.logger) = (inner, logger) }

    @concurrent func respond(
        to request: Request, channel: any Channel, with writer: consuming ResponseWriter
    ) async throws {
        let response = try await response(to: request, channel: channel)
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            // To the parser's own error, Hummingbird would respond a second time.
            throw MalformedBody()
        }
    }

    /// Separate from ``respond(to:channel:with:)``, which may write for hours, and would retain the task's 18 kB.
    private func response(to request: Request, channel: any Channel) async throws -> Response {
        var logger = logger
        logger[metadataKey: "hb.request.id"] = .stringConvertible(RequestID())
        let context = EdgeContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        let responding = Task { try await inner.respond(to: request, context: context) }
        var response: Response
        do {
            response = try await withTaskCancellationHandler {
                try await responding.value
            } onCancel: {
                responding.cancel()
            }
        } catch let error as HTTPParserError {
            throw error
        } catch {
            // `ProblemMiddleware` responds to the errors of routes.
            logger.error("request failed", error: error)
            response = Problem(.internalServerError).response(from: request, context: context)
        }
        response.headers[.date] = date.text(at: .now())
        return response
    }
}

/// The request's body was malformed after the response had begun.
private struct MalformedBody: Error {}

/// The value of the `Date` field, formatted at most once a second.
final class DateField: Sendable {
    private let latest = Mutex((second: Int64.min, text: ""))

    func text(at now: Timestamp) -> String {
        let second = now.millisecondsSinceEpoch / 1_000
        return latest.withLock { latest in
            if latest.second != second { latest = (second, now.httpText) }
            return latest.text
        }
    }
}
