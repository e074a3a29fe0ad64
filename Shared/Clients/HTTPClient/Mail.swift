internal import CCurl

/// One e-mail with its limits.
package struct Mail: Sendable {
    /// `smtp://host:port`, with mandatory STARTTLS, or `smtps://host:port`.
    package var server: String
    /// The credentials; `nil` for no authentication.
    package var login: (user: String, password: String)?
    /// The envelope sender, to which the server sends bounces.
    package var sender: String
    package var recipients: [String]
    /// Headers and text (RFC 5322), with lines that end with CR LF. libcurl doubles dots at the beginnings of lines.
    package var message: [UInt8]
    /// The maximum time to resolve, connect, complete the TLS handshake and log in.
    package var connectMax: Duration
    /// The maximum time until the server has accepted the e-mail.
    package var totalMax: Duration

    package init(
        server: String, login: (user: String, password: String)? = nil, sender: String, recipients: [String],
        message: [UInt8], connectMax: Duration = .seconds(5), totalMax: Duration = .seconds(15)
    ) {
        self.server = server
        self.login = login
        self.sender = sender
        self.recipients = recipients
        self.message = message
        self.connectMax = connectMax
        self.totalMax = totalMax
    }

    /// Rejects values that could inject SMTP commands, and servers without TLS.
    func validate() throws(HTTPError) {
        guard server.hasPrefix("smtp://") || server.hasPrefix("smtps://"),
            server.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformed("the server's URL must be smtp or smtps, in printable ASCII") }
        guard !recipients.isEmpty else { throw .malformed("an e-mail needs at least one recipient") }
        for address in recipients + [sender]
        where !address.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3C && $0 != 0x3E }) {
            throw .malformed("invalid e-mail address: \(address.debugDescription)")
        }
    }
}

/// A client that sends e-mails over SMTP, based on ``Client``.
///
/// Nothing is sent before the TLS handshake is complete and the certificate is verified.
package final class MailClient: Sendable {
    private let client: Client

    package init(configuration: Client.Configuration = Client.Configuration()) {
        client = Client(configuration: configuration)
    }

    /// Sends an e-mail and waits until the server has accepted it.
    ///
    /// - Throws: ``HTTPError`` if the e-mail was not accepted. `status` is the server's last reply code: with
    ///   `maybeSent` it concerns this e-mail, otherwise the connection or the login (RFC 5321, 4.2).
    package func send(_ mail: Mail) async throws(HTTPError) {
        try mail.validate()
        let request = Request("MAIL", mail.server, connectMax: mail.connectMax, totalMax: mail.totalMax)
        _ = try await client.send(QueuedRequest(request, mail))
    }
}

/// The state of an e-mail that libcurl needs during the transfer.
@safe final class MailUpload {
    private let mail: Mail
    private var recipients: UnsafeMutablePointer<curl_slist>?
    private var offset = 0

    init(_ mail: Mail) {
        self.mail = mail
        for recipient in mail.recipients { unsafe recipients = curl_slist_append(recipients, "<\(recipient)>") }
    }

    deinit { unsafe curl_slist_free_all(recipients) }

    /// Sets the options of a handle that sends only e-mails. The handle does not retain this object.
    func attach(to easy: UnsafeMutableRawPointer) -> CURLcode {
        let codes = unsafe [
            curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps"),
            curl_set_number(easy, CURLOPT_USE_SSL, Int(CURLUSESSL_ALL.rawValue)),
            mail.login.map { unsafe curl_set_text(easy, CURLOPT_USERNAME, $0.user) }
                ?? curl_set_pointer(easy, CURLOPT_USERNAME, nil),
            mail.login.map { unsafe curl_set_text(easy, CURLOPT_PASSWORD, $0.password) }
                ?? curl_set_pointer(easy, CURLOPT_PASSWORD, nil),
            curl_set_text(easy, CURLOPT_MAIL_FROM, "<\(mail.sender)>"),
            curl_set_pointer(easy, CURLOPT_MAIL_RCPT, recipients),
            curl_set_upload(easy, onRead, Unmanaged.passUnretained(self).toOpaque(), mail.message.count),
        ]
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let chunk = mail.message[offset...].prefix(buffer.count)
        unsafe buffer.copyBytes(from: chunk)
        offset += chunk.count
        return chunk.count
    }
}

private let onRead: curl_read_callback = { bytes, size, count, context in
    guard let context = unsafe context else { return 0 }
    return unsafe Unmanaged<MailUpload>.fromOpaque(context).takeUnretainedValue()
        .read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}
