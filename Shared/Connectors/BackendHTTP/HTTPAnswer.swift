package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
package import HTTPClient

/// What an answer's status means, for any back end that is spoken to over HTTP.
package enum HTTPAnswer {
    /// - Parameters:
    ///   - isFromService: Whether an error is the called service's own, and not that of something before it: a proxy,
    ///     or a wrong address.
    ///   - messages: What the body of an error says: one message per problem, never none. They are bounded here.
    /// - Throws: What any answer but 2xx stands for.
    package static func check(
        _ response: Response, isWrite: Bool, isFromService: @autoclosure () -> Bool,
        messages: @autoclosure () -> [String]
    ) throws(BackendError) {
        if (200..<300).contains(response.status) { return }
        let messages = BackendMessage.bounded(messages())
        let reason = "HTTP \(response.status): " + messages.joined(separator: "; ")
        switch response.status {
        case 300..<400:
            throw .unauthorized(reason: "HTTP \(response.status): redirected, probably to a login page")
        case 401, 403, 407:
            throw .unauthorized(reason: reason)
        case 408, 429:
            throw .notProcessed(reason: "HTTP \(response.status)", retryAfter: retryAfter(of: response))
        case 400..<500:
            // Only what the service itself says about a write is the entry's fault.
            guard isWrite, isFromService() else { throw .notProcessed(reason: reason, retryAfter: nil) }
            throw .refused(messages)
        default:
            let wait = retryAfter(of: response)
            throw isWrite
                ? .outcomeUnknown(reason: reason, retryAfter: wait) : .notProcessed(reason: reason, retryAfter: wait)
        }
    }

    /// Decodes an answer to a read. Characters that cannot be read or stored are replaced by U+FFFD; see
    /// ``ReadableJSON``.
    package static func decode<Value: Decodable>(_: Value.Type, from body: [UInt8]) throws(BackendError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(ReadableJSON.repaired(body)))
        } catch {
            let reason = BackendMessage.bounded("an answer that cannot be read: \(error)")
            throw .notProcessed(reason: reason, retryAfter: nil)
        }
    }

    /// Decodes the answer to a write, or an error's body, in the same way.
    ///
    /// - Returns: `nil` when it is something else.
    package static func decoded<Value: Decodable>(_: Value.Type, from body: [UInt8]) -> Value? {
        do { return try decode(Value.self, from: body) } catch { return nil }
    }

    // MARK: Retry-After

    /// A longer wait than this is a mistake of the back end's, and cut.
    package static let retryAfterSecondsMax = 86_400

    /// RFC 9110, 10.2.3: seconds, or a date, which is compared with the answer's own `Date`. `nil` when it is neither.
    package static func retryAfter(of response: Response) -> Duration? {
        guard let value = response.headers["retry-after"] else { return nil }
        var wait: Int?
        if !value.isEmpty, value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            wait = Int(value) ?? .max
        } else if let then = Timestamp.seconds(ofHTTPDate: value),
            let now = response.headers["date"].flatMap(Timestamp.seconds(ofHTTPDate:))
        {
            wait = max(0, then - now)
        }
        return wait.map { .seconds(min($0, retryAfterSecondsMax)) }
    }
}
