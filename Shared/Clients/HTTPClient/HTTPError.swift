internal import CCurl

/// The failure of a request without a complete response, in libcurl's terms.
package struct HTTPError: Error, Equatable, Sendable {
    /// Whether the server may have received the request.
    package enum Outcome: Equatable, Sendable {
        /// No byte of the request was sent, so the server cannot have acted on it.
        ///
        /// Failures to resolve, to connect and of the TLS handshake (CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
        /// CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, …), an invalid request, a client at its limit, and
        /// a timeout (CURLE_OPERATION_TIMEDOUT) while the request waited for a connection.
        case notSent
        /// Sending had started: the server may have acted on the request.
        ///
        /// CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT and all
        /// others after libcurl's pre-request callback (CURLOPT_PREREQFUNCTION).
        case maybeSent
    }

    /// Depends on whether sending had started, not on `code`: a timeout can occur before or after.
    package let outcome: Outcome
    /// libcurl's CURLcode. Source: https://curl.se/libcurl/c/libcurl-errors.html
    package let code: UInt32
    /// The response's status, if its head was received: a truncated or oversized response.
    package private(set) var status: Int?
    package let message: String
    /// The request was not sent because `Request.sendBefore` had passed.
    package private(set) var missedSendDeadline = false
    /// No connection was made because the address is not public: `Client.Configuration.publicAddressesOnly`.
    package private(set) var isPrivate = false

    /// The connection or the response timed out.
    package var isTimeout: Bool { code == CURLE_OPERATION_TIMEDOUT.rawValue }

    /// The body was longer than `Request.responseBytesMax`, or the head longer than `Response.headBytesMax`.
    package var isResponseTooLarge: Bool { code == CURLE_FILESIZE_EXCEEDED.rawValue }

    /// The server's certificate was rejected: expired, for another name, or of an unknown authority.
    package var isCertificateRefused: Bool { code == CURLE_PEER_FAILED_VERIFICATION.rawValue }

    /// The waiting task was cancelled.
    package var isCancelled: Bool { code == CURLE_ABORTED_BY_CALLBACK.rawValue && !missedSendDeadline }

    /// A short classification without content from servers or URLs.
    var kind: String {
        if missedSendDeadline { return "deadline_exceeded" }
        if isPrivate { return "private_address" }
        if isTimeout { return outcome == .notSent ? "connect_timeout" : "timeout" }
        if isCertificateRefused { return "certificate" }
        if isResponseTooLarge { return "response_too_large" }
        if isCancelled { return "cancelled" }
        return outcome == .notSent ? "not_sent" : "connection"
    }

    /// Creates the error of ``isResponseTooLarge``.
    package static func tooLarge(_ outcome: Outcome, status: Int? = nil, _ message: String) -> HTTPError {
        HTTPError(outcome: outcome, code: CURLE_FILESIZE_EXCEEDED.rawValue, status: status, message: message)
    }

    static func malformed(_ message: String) -> HTTPError {
        HTTPError(outcome: .notSent, code: CURLE_URL_MALFORMAT.rawValue, message: message)
    }

    static func cancelled(_ outcome: Outcome) -> HTTPError {
        HTTPError(outcome: outcome, code: CURLE_ABORTED_BY_CALLBACK.rawValue, message: "cancelled")
    }

    static func shutDown(_ outcome: Outcome) -> HTTPError {
        HTTPError(outcome: outcome, code: CURLE_FAILED_INIT.rawValue, message: "the HTTP client was shut down")
    }
}

extension HTTPError: CustomStringConvertible {
    package var description: String { message }
}
