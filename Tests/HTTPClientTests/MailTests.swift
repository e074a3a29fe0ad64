import HTTPClient
import LocalCluster
import TestSupport
import Testing

/// E-mails to a real mail server, aiosmtpd.
@Suite(.ownThreads) struct MailTests {
    private static let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

    private func client(_ receivers: NoticeReceivers) -> MailClient {
        var configuration = Client.Configuration()
        configuration.caFile = receivers.certificateFile
        return MailClient(configuration: configuration)
    }

    private func mail(
        _ server: String, to address: String = "ana@example.com", login: (String, String)? = ("fieldpost", "post"),
        _ message: String = "Subject: a\r\n\r\nhello\r\n.a dot\r\n..\r\n"
    ) -> Mail {
        Mail(
            server: server, login: login.map { (user: $0.0, password: $0.1) }, sender: "post@example.com",
            recipients: [address], message: Array(message.utf8))
    }

    @Test func mailIsSentOverStartTLSAndTLS() async throws {
        let receivers = try NoticeReceivers(secret: Self.secret)
        let client = client(receivers)
        try await client.send(mail(receivers.startTLSServer))
        try await client.send(mail(receivers.startTLSServer, to: "bo@example.com"))
        try await client.send(mail(receivers.tlsServer, login: nil))
        let received = try receivers.received()
        #expect(received.map(\.path) == ["ana@example.com", "bo@example.com", "ana@example.com"])
        #expect(received.allSatisfy { $0.isTLS == true && $0.text == "Subject: a\r\n\r\nhello\r\n.a dot\r\n..\r\n" })
        #expect(received.map(\.login) == ["fieldpost", "fieldpost", nil])
    }

    @Test func mailRequiresTLSAndTrustedServer() async throws {
        let receivers = try NoticeReceivers(secret: Self.secret)
        let plain = await #expect(throws: HTTPError.self) {
            try await client(receivers).send(mail(receivers.plainServer, login: nil))
        }
        #expect(plain?.outcome == .notSent)
        for server in [receivers.startTLSServer, receivers.tlsServer] {
            let untrusted = await #expect(throws: HTTPError.self) { try await MailClient().send(mail(server)) }
            #expect(untrusted?.outcome == .notSent)
        }
        #expect(try receivers.received().isEmpty)
    }

    @Test func serverRepliesMapToOutcomes() async throws {
        let receivers = try NoticeReceivers(secret: Self.secret)
        let client = client(receivers)
        let server = receivers.startTLSServer
        let login = await #expect(throws: HTTPError.self) {
            try await client.send(mail(server, login: ("fieldpost", "wrong")))
        }
        #expect(login?.outcome == .notSent && login?.status == 535, "\(login.map { "\($0)" } ?? "")")
        let unknown = await #expect(throws: HTTPError.self) {
            try await client.send(mail(server, to: "nobody@example.com"))
        }
        #expect(unknown?.outcome == .maybeSent && unknown?.status == 550, "\(unknown.map { "\($0)" } ?? "")")
        let busy = await #expect(throws: HTTPError.self) { try await client.send(mail(server, to: "busy@example.com")) }
        #expect(busy?.outcome == .maybeSent && busy?.status == 451, "\(busy.map { "\($0)" } ?? "")")
        try await client.send(mail(server, to: "busy@example.com"))
        receivers.receiver.process.kill9()
        let unreachable = await #expect(throws: HTTPError.self) { try await client.send(mail(server)) }
        #expect(unreachable?.outcome == .notSent)
    }

    @Test(arguments: ["a@b\r\nRCPT TO:<eve@example.com>", "a@b> SIZE=1", "a b@c"])
    func smtpCommandInjectionIsRejected(address: String) async throws {
        let good = mail("smtp://127.0.0.1:1")
        for (sender, recipients) in [(address, ["ana@example.com"]), ("post@example.com", [address])] {
            var mail = good
            (mail.sender, mail.recipients) = (sender, recipients)
            let wrong = mail
            let error = await #expect(throws: HTTPError.self) { try await MailClient().send(wrong) }
            #expect(error?.message.contains("invalid e-mail address") == true)
        }
        var mail = good
        mail.recipients = []
        let withoutRecipient = mail
        await #expect(throws: HTTPError.self) { try await MailClient().send(withoutRecipient) }
        mail = good
        mail.server = "http://127.0.0.1:1"
        let elsewhere = mail
        await #expect(throws: HTTPError.self) { try await MailClient().send(elsewhere) }
    }
}
