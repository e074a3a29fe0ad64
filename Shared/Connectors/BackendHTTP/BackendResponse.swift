package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
package import HTTPClient

/// Classification and decoding of a back end's HTTP responses.
package enum BackendResponse {
    /// Verifies that a response has a 2xx status.
    ///
    /// - Parameters:
    ///   - isFromService: Whether an error was returned by the called service itself, and not by a proxy or because of
    ///     a wrong address.
    ///   - messages: The messages of an error's body, at least one. They are truncated here.
    /// - Throws: The error that corresponds to any other status.
    package static func check(
        _ response: Response, isWrite: Bool, isFromService: @autoclosure () -> Bool,
        messages: @autoclosure () -> [String]
    ) throws(BackendError) {
        if (200..<300).contains(response.status) { return }
        let messages = BackendMessage.truncated(messages())
        let reason = "HTTP \(response.status): " + messages.joined(separator: "; ")
        switch response.status {
        case 300..<400:
            throw .unauthorized(reason: "HTTP \(response.status): redirected, probably to a login page")
        case 401, 403, 407:
            throw .unauthorized(reason: reason)
        case 408, 429:
            throw .notProcessed(reason: "HTTP \(response.status)", retryAfter: retryAfter(of: response))
        case 400..<500:
            // Only a rejection of a write by the service itself makes the entry invalid.
            guard isWrite, isFromService() else { throw .notProcessed(reason: reason, retryAfter: nil) }
            throw .refused(messages)
        default:
            let wait = retryAfter(of: response)
            throw isWrite
                ? .outcomeUnknown(reason: reason, retryAfter: wait) : .notProcessed(reason: reason, retryAfter: wait)
        }
    }

    /// Decodes the response to a read. Unreadable and unstorable characters are replaced by U+FFFD; see
    /// ``ReadableJSON``.
    package static func decode<Value: Decodable>(_: Value.Type, from body: [UInt8]) throws(BackendError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(ReadableJSON.repaired(body)))
        } catch {
            let reason = BackendMessage.truncated("unreadable response: \(error)")
            throw .notProcessed(reason: reason, retryAfter: nil)
        }
    }

    /// Decodes the response to a write, or an error's body, in the same way.
    ///
    /// - Returns: `nil` if the body has another form.
    package static func decoded<Value: Decodable>(_: Value.Type, from body: [UInt8]) -> Value? {
        do { return try decode(Value.self, from: body) } catch { return nil }
    }

    // MARK: Retry-After

    /// Maximum of ``retryAfter(of:)`` in seconds; a longer time is a mistake of the back end and is truncated.
    package static let retryAfterSecondsMax = 86_400

    /// Parses `Retry-After` (RFC 9110, 10.2.3): seconds, or a date, which is compared with the response's own `Date`.
    ///
    /// - Returns: `nil` if the header is absent or malformed.
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
