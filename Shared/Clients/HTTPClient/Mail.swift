internal import CCurl

/// One e-mail with its limits.
package struct Mail: Sendable {
    /// `smtp://host:port`, where STARTTLS is asked for before anything is said, or `smtps://host:port`.
    package var server: String
    /// Who logs in, and the password; none: nobody does.
    package var login: (user: String, password: String)?
    /// Whom the server tells when it cannot be delivered.
    package var sender: String
    package var recipients: [String]
    /// Headers and text (RFC 5322), with lines that end with CR LF. Dots at the beginnings of lines are doubled on the
    /// way.
    package var message: [UInt8]
    /// The time to resolve, connect, shake hands and log in.
    package var connectMax: Duration
    /// The time until the server has taken it.
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

    /// Refuses what could smuggle a command into the connection, or would be sent in the open.
    func validate() throws(HTTPError) {
        guard server.hasPrefix("smtp://") || server.hasPrefix("smtps://"),
            server.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformed("only smtp and smtps addresses are mail servers") }
        guard !recipients.isEmpty else { throw .malformed("an e-mail needs somebody it is for") }
        for address in recipients + [sender]
        where !address.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3C && $0 != 0x3E }) {
            throw .malformed("not an e-mail address: \(address.debugDescription)")
        }
    }
}

/// Sends e-mails: the same client as for HTTP, that speaks SMTP and nothing else.
///
/// Nothing is said to a server before TLS is there and its certificate is verified.
package final class MailClient: Sendable {
    private let client: Client

    package init(configuration: Client.Configuration = Client.Configuration()) {
        client = Client(configuration: configuration)
    }

    /// Sends an e-mail, and waits until the server has taken it.
    ///
    /// - Throws: What is known of one that was not taken. `status` is the server's last answer: with `maybeSent` it is
    ///   about this e-mail, else about the connection or the login (RFC 5321, 4.2).
    package func send(_ mail: Mail) async throws(HTTPError) {
        try mail.validate()
        _ = try await client.send(Order(mail))
    }

    /// Ends the thread; see `Client`.
    package func shutDown() { client.shutDown() }
}

/// What libcurl needs of an e-mail while it is sent.
@safe final class MailUpload {
    private let mail: Mail
    private var recipients: UnsafeMutablePointer<curl_slist>?
    private var offset = 0

    init(_ mail: Mail) {
        self.mail = mail
        for recipient in mail.recipients { unsafe recipients = curl_slist_append(recipients, "<\(recipient)>") }
    }

    deinit { unsafe curl_slist_free_all(recipients) }

    /// Sets the options of a handle that sends nothing but e-mails. The handle does not keep this value.
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
        let part = mail.message[offset...].prefix(buffer.count)
        unsafe buffer.copyBytes(from: part)
        offset += part.count
        return part.count
    }
}

private let onRead: curl_read_callback = { bytes, size, count, context in
    guard let context = unsafe context else { return 0 }
    return unsafe Unmanaged<MailUpload>.fromOpaque(context).takeUnretainedValue()
        .read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
}
