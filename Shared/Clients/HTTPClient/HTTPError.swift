internal import CCurl

/// A request that got no whole answer, in libcurl's own terms.
package struct HTTPError: Error, Equatable, Sendable {
    /// What is known of the request when no whole answer came.
    package enum Outcome: Equatable, Sendable {
        /// No byte of the request left this machine, so the server cannot have acted on it.
        ///
        /// Resolving, connecting and the TLS handshake end so (CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
        /// CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, …), as do a malformed request, a full client, and
        /// a time-out (CURLE_OPERATION_TIMEDOUT) that came while the request still waited for its connection.
        case notSent
        /// The request was at least begun: the server may have acted on it.
        ///
        /// CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT and
        /// all others, when they come after libcurl's pre-request callback (CURLOPT_PREREQFUNCTION).
        case maybeSent
    }

    /// Decided by whether sending had begun, not by `code`: a time-out, for one, happens on either side.
    package let outcome: Outcome
    /// libcurl's CURLcode. Source: https://curl.se/libcurl/c/libcurl-errors.html
    package let code: UInt32
    /// The status line's code, when the answer had begun: an answer that was cut off or too large.
    package let status: Int?
    package let message: String
    /// It was not sent, because `Request.sendBefore` had passed.
    package let isTooLate: Bool
    /// It was not connected to, because its address is not public: `Client.Configuration.publicAddressesOnly`.
    package let isPrivate: Bool

    package init(
        outcome: Outcome, code: UInt32, status: Int? = nil, message: String, isTooLate: Bool = false,
        isPrivate: Bool = false
    ) {
        self.outcome = outcome
        self.code = code
        self.status = status
        self.message = message
        self.isTooLate = isTooLate
        self.isPrivate = isPrivate
    }

    /// The connection could not be had, or the answer did not come, in the time allowed.
    package var isTimeout: Bool { code == CURLE_OPERATION_TIMEDOUT.rawValue }

    /// The answer was longer than `Request.answerBytesMax`, or its head longer than `Response.headBytesMax`.
    package var isAnswerTooLarge: Bool { code == CURLE_FILESIZE_EXCEEDED.rawValue }

    /// The server's certificate was not accepted: expired, for another name, or of an unknown authority.
    package var isCertificateRefused: Bool { code == CURLE_PEER_FAILED_VERIFICATION.rawValue }

    /// The waiting task was cancelled.
    package var isCancelled: Bool { code == CURLE_ABORTED_BY_CALLBACK.rawValue && !isTooLate }

    /// In a word, without what servers and addresses say.
    var kind: String {
        if isTooLate { return "too_late" }
        if isPrivate { return "private_address" }
        if isTimeout { return outcome == .notSent ? "connect_timeout" : "timeout" }
        if isCertificateRefused { return "certificate" }
        if isAnswerTooLarge { return "answer_too_large" }
        if isCancelled { return "cancelled" }
        return outcome == .notSent ? "not_sent" : "connection"
    }

    static let tooLargeCode = CURLE_FILESIZE_EXCEEDED.rawValue

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
