import Essentials

/// One HTTP request with its limits.
package struct Request: Sendable {
    package var method: String
    /// Absolute, `http` or `https`, already percent-encoded.
    package var url: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]?
    /// The time to resolve, connect and shake hands.
    package var connectMax: Duration
    /// The time from `send` to the last byte of the answer, waiting for a free connection included.
    ///
    /// Streams ignore it.
    package var totalMax: Duration
    /// The longest body that is accepted; more fails the request while it is being received. Streams ignore it.
    package var answerBytesMax: Int
    /// It is not sent from then on, however long it waited for its connection; `HTTPError.isTooLate` tells.
    package var sendBefore: ContinuousClock.Instant?
    /// The cookie jar to use; none keeps and sends no cookies.
    package var session: Session?

    package init(
        _ method: String, _ url: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
        connectMax: Duration = .seconds(5), totalMax: Duration = .seconds(30), answerBytesMax: Int = 16 * 1024 * 1024,
        sendBefore: ContinuousClock.Instant? = nil, session: Session? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.connectMax = connectMax
        self.totalMax = totalMax
        self.answerBytesMax = answerBytesMax
        self.sendBefore = sendBefore
        self.session = session
    }

    /// A GET.
    package init(
        _ url: String, headers: [(name: String, value: String)] = [], connectMax: Duration = .seconds(5),
        totalMax: Duration = .seconds(30), answerBytesMax: Int = 16 * 1024 * 1024, session: Session? = nil
    ) {
        self.init(
            "GET", url, headers: headers, connectMax: connectMax, totalMax: totalMax, answerBytesMax: answerBytesMax,
            session: session)
    }

    /// The request with the header that tells the other system which trace it belongs to.
    func carrying(_ trace: TraceContext?) -> Request {
        guard let trace else { return self }
        var request = self
        request.headers.append(("traceparent", trace.text))
        return request
    }

    /// What a collector is told of it: of the address only where it leads.
    func work(status: Int?, failure: String? = nil) -> TraceSpan.Work {
        let rest = url.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst(3)
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        let address = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[$0...].dropFirst() } ?? authority
        return .call(
            method: method, address: String(decoding: address, as: UTF8.self), status: status, failure: failure)
    }

    /// Methods that only read, so that libcurl may repeat them on a new connection. Source: RFC 9110, 9.2.1.
    var isSafe: Bool { method == "GET" || method == "HEAD" || method == "OPTIONS" }

    /// Refuses what could smuggle a second header or request into the connection.
    func validate() throws(HTTPError) {
        guard !method.isEmpty, method.utf8.allSatisfy(isTokenByte) else {
            throw .malformed("not an HTTP method: \(method.debugDescription)")
        }
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
            throw .malformed("only http and https addresses are called")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .malformed("an address must be percent-encoded")
        }
        for header in headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(isTokenByte) else {
                throw .malformed("not a header name: \(header.name.debugDescription)")
            }
            // The value is not repeated in the message: it may be a secret.
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
