import Essentials

/// One HTTP request with its limits.
package struct Request: Sendable {
    package var method: String
    /// An absolute `http` or `https` URL, percent-encoded.
    package var url: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]?
    /// The maximum time to resolve, connect and complete the TLS handshake.
    package var connectMax: Duration
    /// The maximum time from `send` to the last byte of the response, including the wait for a free connection.
    ///
    /// Streams ignore it.
    package var totalMax: Duration
    /// Maximum size of the body; a larger one fails the request while it is received. Streams ignore it.
    package var responseBytesMax: Int
    /// A deadline after which the request is not sent, for example after a wait for a connection; see
    /// `HTTPError.missedSendDeadline`.
    package var sendBefore: ContinuousClock.Instant?
    /// The cookie jar; `nil` neither stores nor sends cookies.
    package var session: Session?

    package init(
        _ method: String, _ url: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        connectMax: Duration = .seconds(5), totalMax: Duration = .seconds(30), responseBytesMax: Int = 16 * 1024 * 1024,
        sendBefore: ContinuousClock.Instant? = nil, session: Session? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.connectMax = connectMax
        self.totalMax = totalMax
        self.responseBytesMax = responseBytesMax
        self.sendBefore = sendBefore
        self.session = session
    }

    /// Creates a GET request.
    package init(
        _ url: String, headers: [(name: String, value: String)] = [], connectMax: Duration = .seconds(5),
        totalMax: Duration = .seconds(30), responseBytesMax: Int = 16 * 1024 * 1024, session: Session? = nil
    ) {
        self.init(
            "GET", url, headers: headers, connectMax: connectMax, totalMax: totalMax,
            responseBytesMax: responseBytesMax,
            session: session)
    }

    /// Returns the request with the trace context's header.
    func propagating(_ trace: TraceContext?) -> Request {
        guard let trace else { return self }
        var request = self
        request.headers.append(("traceparent", trace.text))
        return request
    }

    /// Returns the request as an operation of a span; of the URL it contains only host and port.
    func spanWork(status: Int?, failure: String? = nil) -> TraceSpan.Work {
        let rest = url.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst(3)
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        let address = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[$0...].dropFirst() } ?? authority
        return .call(
            method: method, address: String(decoding: address, as: UTF8.self), status: status, failure: failure)
    }

    /// Safe methods, which libcurl may resend on a new connection. Source: RFC 9110, 9.2.1.
    var isSafe: Bool { method == "GET" || method == "HEAD" || method == "OPTIONS" }

    /// Rejects values that could inject a second header or request.
    func validate() throws(HTTPError) {
        guard !method.isEmpty, method.utf8.allSatisfy(isTokenByte) else {
            throw .malformed("invalid HTTP method: \(method.debugDescription)")
        }
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
            throw .malformed("the URL must be http or https")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .malformed("the URL must be percent-encoded")
        }
        for header in headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(isTokenByte) else {
                throw .malformed("invalid header name: \(header.name.debugDescription)")
            }
            // The value may be a secret and is not included in the message.
            guard header.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw .malformed("the header \(header.name) has a control character in its value")
            }
        }
    }
}

/// Source: RFC 9110, 5.6.2.
private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    default:
        "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
