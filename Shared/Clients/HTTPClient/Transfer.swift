internal import CCurl
internal import Essentials

/// Owns one easy handle and performs one request after another. Used only on its client's thread.
@safe final class Transfer {
    /// The receiver of the response.
    enum Sink {
        case none
        case whole(CheckedContinuation<Result<Response, HTTPError>, Never>)
        case stream(StreamBuffer, idleMax: Duration?)

        func deliver(_ result: Result<Response, HTTPError>) {
            switch self {
            case .none: break
            case .whole(let continuation): continuation.resume(returning: result)
            case .stream(let buffer, _):
                if case .failure(let error) = result { buffer.finish(error) } else { buffer.finish(nil) }
            }
        }

        func fail(_ error: HTTPError) { deliver(.failure(error)) }
    }

    private let easy: UnsafeMutableRawPointer
    /// Must live until the transfer ends, because libcurl does not copy the list.
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private let errorText: UnsafeMutablePointer<CChar>

    private(set) var id: UInt64 = 0
    private var sink = Sink.none
    private var session: Session?
    private var upload: MailUpload?
    private var head: [UInt8] = []
    private var body: [UInt8] = []
    private var responseBytesMax = 0
    private var mayRetry = false
    private var hasBegun = false
    private var wasRetried = false
    private var sendBefore: ContinuousClock.Instant?
    private var missedSendDeadline = false
    private var isTooLarge = false
    /// The connection was rejected because the address is not public.
    private var isPrivate = false
    private var headIsDelivered = false
    private var isPaused = false
    private var lastByteAt = ContinuousClock.now
    /// The deadline for the start of the request.
    private var startDeadline: ContinuousClock.Instant?

    /// A name is looked up again for a connection after this number of seconds. libcurl's default is 60 s: a server
    /// that returned with another address, as a new container does, was unreachable meanwhile.
    private static let addressAgeMaxSeconds = 1

    init?(_ configuration: Client.Configuration) {
        guard let easy = unsafe curl_easy_init() else { return nil }
        unsafe self.easy = unsafe easy
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        let codes = unsafe [
            curl_set_callbacks(easy, onHead, onBody, onBegin, context),
            curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText),
            curl_set_number(easy, CURLOPT_NOSIGNAL, 1),
            curl_set_number(easy, CURLOPT_TCP_KEEPALIVE, 1),
            curl_set_number(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS),
            curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
            curl_set_number(easy, CURLOPT_FOLLOWLOCATION, 0),
            curl_set_number(easy, CURLOPT_SSL_VERIFYPEER, 1),
            curl_set_number(easy, CURLOPT_SSL_VERIFYHOST, 2),
            curl_set_number(easy, CURLOPT_DNS_CACHE_TIMEOUT, Self.addressAgeMaxSeconds),
            curl_set_text(easy, CURLOPT_PROXY, configuration.proxy ?? ""),
            curl_set_text(easy, CURLOPT_USERAGENT, configuration.userAgent),
            curl_set_number(easy, CURLOPT_MAXAGE_CONN, Int(configuration.connectionIdleMax.components.seconds)),
            curl_set_number(easy, CURLOPT_CERTINFO, configuration.readsCertificates ? 1 : 0),
            configuration.caFile.map { unsafe curl_set_text(easy, CURLOPT_CAINFO, $0) } ?? CURLE_OK,
            configuration.publicAddressesOnly
                ? unsafe curl_set_connect_callback(easy, onConnect, context) : CURLE_OK,
        ]
        guard codes.allSatisfy({ $0 == CURLE_OK }) else { return nil }
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe curl_slist_free_all(headerList)
        unsafe errorText.deallocate()
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    var outcome: HTTPError.Outcome { hasBegun ? .maybeSent : .notSent }

    // MARK: Lifecycle

    /// Sets all options that depend on the request. Returns the error if libcurl rejects the request; the transfer must
    /// then not be reused.
    func prepare(_ queued: QueuedRequest, _ sink: Sink) -> HTTPError? {
        let request = queued.request
        id = queued.id
        responseBytesMax = request.responseBytesMax
        mayRetry = request.isSafe
        hasBegun = false
        wasRetried = false
        sendBefore = request.sendBefore
        missedSendDeadline = false
        isTooLarge = false
        isPrivate = false
        headIsDelivered = false
        isPaused = false
        lastByteAt = .now
        unsafe errorText.pointee = 0

        var totalMax = request.totalMax
        if case .stream = sink { totalMax = .zero }
        startDeadline = totalMax == .zero ? nil : lastByteAt + totalMax
        let codes = unsafe [
            curl_set_text(easy, CURLOPT_URL, request.url),
            curl_set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, request.connectMax.curlMilliseconds),
            curl_set_number(easy, CURLOPT_TIMEOUT_MS, totalMax == .zero ? 0 : totalMax.curlMilliseconds),
            // Over TLS, wait for a connection that can multiplex the request.
            curl_set_number(easy, CURLOPT_PIPEWAIT, request.url.hasPrefix("https") ? 1 : 0),
            queued.mail.map { attach($0) } ?? setMethod(of: request),
            setHeaders(of: request),
            request.session?.attach(to: unsafe easy) ?? CURLE_OK,
        ]
        if let code = codes.first(where: { $0 != CURLE_OK }) {
            return HTTPError(
                outcome: .notSent, code: code.rawValue, message: unsafe String(cString: curl_easy_strerror(code)))
        }
        session = request.session
        self.sink = sink
        return nil
    }

    private func attach(_ mail: Mail) -> CURLcode {
        let upload = MailUpload(mail)
        self.upload = upload
        return unsafe upload.attach(to: easy)
    }

    private func setMethod(of request: Request) -> CURLcode {
        var codes = unsafe [curl_set_no_body(easy), curl_set_number(easy, CURLOPT_HTTPGET, 1)]
        if request.method == "HEAD" {
            unsafe codes.append(curl_set_number(easy, CURLOPT_NOBODY, 1))
        } else if request.body != nil || request.method == "POST" {
            let body = request.body ?? []
            unsafe codes.append(body.withUnsafeBytes { unsafe curl_set_body(easy, $0.baseAddress, $0.count) })
        }
        let isNamedByCurl = request.method == "GET" && request.body == nil || request.method == "HEAD"
        codes.append(
            isNamedByCurl
                ? unsafe curl_set_pointer(easy, CURLOPT_CUSTOMREQUEST, nil)
                : unsafe curl_set_text(easy, CURLOPT_CUSTOMREQUEST, request.method))
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    private func setHeaders(of request: Request) -> CURLcode {
        unsafe curl_slist_free_all(headerList)
        unsafe headerList = nil
        var hasContentType = false
        for (name, value) in request.headers {
            if name.lowercased() == "content-type" { hasContentType = true }
            // libcurl's syntax for a header without a value.
            unsafe headerList = curl_slist_append(headerList, value.isEmpty ? "\(name);" : "\(name): \(value)")
        }
        if request.body != nil || request.method == "POST" {
            // Suppress headers that libcurl adds by default: the form content type, and `Expect`, which adds a
            // network delay.
            if !hasContentType { unsafe headerList = curl_slist_append(headerList, "Content-Type:") }
            unsafe headerList = curl_slist_append(headerList, "Expect:")
        }
        return unsafe curl_set_pointer(easy, CURLOPT_HTTPHEADER, headerList)
    }

    func join(_ multi: UnsafeMutableRawPointer) {
        unsafe curl_multi_add_handle(multi, easy)
    }

    func leave(_ multi: UnsafeMutableRawPointer) {
        unsafe curl_multi_remove_handle(multi, easy)
        guard session != nil else { return }
        unsafe curl_set_pointer(easy, CURLOPT_COOKIEFILE, nil)
        unsafe curl_set_pointer(easy, CURLOPT_SHARE, nil)
        session = nil
    }

    /// Delivers the result to the receiver and releases it.
    func finish(_ result: Result<Response, HTTPError>) {
        sink.deliver(result)
        sink = .none
        upload = nil
        head = []
        body = []
    }

    func result(of code: CURLcode) -> Result<Response, HTTPError> {
        let status = unsafe curl_get_status(easy)
        if code == CURLE_OK, status > 0 {
            let end = CertificateEnd.first {
                unsafe curl_get_certificate_end(easy, $0).map { unsafe String(cString: $0) }
            }
            return .success(Response(status: status, head: head, body: body, certificateEnd: end))
        }
        let receivedStatus = status > 0 ? status : nil
        if isTooLarge {
            let message = "the response is larger than \(responseBytesMax) bytes"
            return .failure(.tooLarge(outcome, status: receivedStatus, message))
        }
        if missedSendDeadline {
            let message = "the request was not sent before its deadline"
            return .failure(
                HTTPError(outcome: outcome, code: code.rawValue, message: message, missedSendDeadline: true))
        }
        if isPrivate, !hasBegun {
            let message = "the address is not public; connections to private addresses are not allowed"
            return .failure(HTTPError(outcome: .notSent, code: code.rawValue, message: message, isPrivate: true))
        }
        if wasRetried {
            let message = "the connection was lost after the request had been sent"
            return .failure(HTTPError(outcome: outcome, code: CURLE_GOT_NOTHING.rawValue, message: message))
        }
        var message = unsafe String(cString: errorText)
        if message.isEmpty { message = unsafe String(cString: curl_easy_strerror(code)) }
        return .failure(HTTPError(outcome: outcome, code: code.rawValue, status: receivedStatus, message: message))
    }

    // MARK: Connecting

    fileprivate func connect(to address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = unsafe bytes.withUnsafeMutableBufferPointer {
            unsafe curl_address_bytes(address, $0.baseAddress)
        }
        guard PublicAddressRule.isPublic(Array(bytes.prefix(Int(count)))) else {
            isPrivate = true
            return CURL_SOCKET_BAD
        }
        // Reset per address: libcurl tries all addresses of a name, and a public one may fail to connect.
        isPrivate = false
        return unsafe curl_open_socket(address)
    }

    // MARK: Arrival

    /// Called before the first byte of the request is sent, and again before libcurl resends it on a new connection.
    fileprivate func begin() -> Int32 {
        if hasBegun && !mayRetry {
            wasRetried = true
            return CURL_PREREQFUNC_ABORT
        }
        if let sendBefore, ContinuousClock.now >= sendBefore {
            missedSendDeadline = true
            return CURL_PREREQFUNC_ABORT
        }
        hasBegun = true
        return CURL_PREREQFUNC_OK
    }

    fileprivate func receiveHead(_ line: UnsafeRawBufferPointer) -> Int {
        guard !headIsDelivered else { return line.count }  // trailers
        // Another status line follows 100 Continue and other interim responses.
        if unsafe line.starts(with: "HTTP/".utf8) { head.removeAll(keepingCapacity: true) }
        guard head.count + line.count <= Response.headBytesMax else {
            isTooLarge = true
            return 0
        }
        unsafe head.append(contentsOf: line)
        lastByteAt = .now
        if line.count <= 2, case .stream(let buffer, _) = sink {
            let status = unsafe curl_get_status(easy)
            if status >= 200 {
                headIsDelivered = true
                buffer.open(status: status, headers: Headers(bytes: head))
            }
        }
        return line.count
    }

    fileprivate func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch sink {
        case .none:
            return 0
        case .whole:
            guard body.count + bytes.count <= responseBytesMax else {
                isTooLarge = true
                return 0
            }
            unsafe body.append(contentsOf: bytes)
        case .stream(let buffer, _):
            lastByteAt = .now
            guard buffer.append(unsafe Array(bytes)) else {
                isPaused = true
                return Int(CURL_WRITEFUNC_PAUSE)
            }
        }
        return bytes.count
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        lastByteAt = .now
        unsafe curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    /// The deadline of a stream's idle timeout or of a request's wait for a connection, for which libcurl applies no
    /// timeout. `nil` if there is no such limit.
    func deadline(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        switch sink {
        case .none: nil
        case .whole: hasBegun ? nil : startDeadline
        case .stream(_, let idleMax): idleMax.map { (isPaused ? now : lastByteAt) + $0 }
        }
    }

    /// The error for an exceeded deadline.
    var timedOut: HTTPError {
        let message =
            if case .stream = sink { "no data arrived on the stream within its idle timeout" } else {
                "no connection became free within the timeout"
            }
        return HTTPError(outcome: outcome, code: CURLE_OPERATION_TIMEDOUT.rawValue, message: message)
    }
}

private let onBegin: curl_prereq_callback = { context, _, _, _, _ in
    unsafe Transfer.from(context)?.begin() ?? CURL_PREREQFUNC_ABORT
}

private let onConnect: curl_opensocket_callback = { context, _, address in
    guard let transfer = unsafe Transfer.from(context), let address = unsafe address else { return CURL_SOCKET_BAD }
    return unsafe transfer.connect(to: address)
}

private let onHead: curl_write_callback = { bytes, size, count, context in
    unsafe Transfer.from(context)?.receiveHead(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

private let onBody: curl_write_callback = { bytes, size, count, context in
    unsafe Transfer.from(context)?.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
}

extension Duration {
    /// At least 1 ms, because libcurl interprets 0 as no limit.
    fileprivate var curlMilliseconds: Int { max(1, Int(clamping: milliseconds(roundedUp: true))) }
}
