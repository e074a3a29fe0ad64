import Deliveries
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import NoticeDeliverer

@Suite(.ownThreads) struct MailMessageTests {
    private static let id = UUID(uuidString: "7E1F3C52-65A4-5C39-8D8E-5C1F8A1C1B20")
    private static let date = Timestamp("2026-11-23T07:30:15Z")

    private func message(_ texts: String...) throws -> String {
        let date = try #require(Self.date)
        let items = texts.map { Notice(about: nil, code: .defectModified, text: $0, timestamp: date) }
        let message = MailMessage(
            id: try #require(Self.id), from: "post@example.com", to: "ana@example.com", date: date, items: items)
        return String(decoding: message.bytes, as: UTF8.self)
    }

    @Test func messageConformsToStandards() throws {
        #expect(
            try message("SAMPL1 (It fails) has changed")
                == """
                From: <post@example.com>
                To: <ana@example.com>
                Subject: SAMPL1 (It fails) has changed
                Date: Mon, 23 Nov 2026 07:30:15 +0000
                Message-ID: <7e1f3c52-65a4-5c39-8d8e-5c1f8a1c1b20@example.com>
                Auto-Submitted: auto-generated
                MIME-Version: 1.0
                Content-Type: text/plain; charset=utf-8
                Content-Transfer-Encoding: quoted-printable

                SAMPL1 (It fails) has changed

                """.replacing("\n", with: "\r\n"))
    }

    /// No headline adds a header or a long line.
    @Test(arguments: [
        "a\r\nBcc: eve@example.com", "a\nBcc: eve@example.com\n\nbody", "a\rBcc: e@x", "a\u{2028}Bcc: e@x", "a\u{85}b",
        "=?utf-8?B?QQ==?=", "Zähler zeigt 漢字 und 👩‍👩‍👧‍👦 nicht", String(repeating: "lang ", count: 200),
        String(repeating: "漢", count: 500), "", "\u{0}\u{1B}[31m", "ends with a space ", "a=b",
    ]) func headlineCannotInjectHeaders(text: String) throws {
        let message = try message(text)
        let parts = message.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = parts[0].components(separatedBy: "\r\n").filter { !$0.hasPrefix(" ") }
        #expect(
            lines.map { $0.prefix { $0 != ":" } } == [
                "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
                "Content-Transfer-Encoding",
            ])
        #expect(message.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F || $0 == 0x0D || $0 == 0x0A })
        for line in message.components(separatedBy: "\r\n") { #expect(line.utf8.count <= 78 && !line.contains("\n")) }
        // Python's standard library decodes the same text.
        let read = try Self.read(message)
        #expect(read.text == text.replacing("\r\n", with: "\n") + "\n")
        #expect(read.subject.trimmed == String(MailMessage.oneLine(text).unicodeScalars.prefix(120)).trimmed)
    }

    /// One Character may have any length.
    @Test func subjectIsLimitedByScalars() throws {
        let message = try message("Z" + String(repeating: "\u{301}", count: 20_000))
        let subject = message.components(separatedBy: "\r\n").drop { !$0.hasPrefix("Subject") }.prefix {
            $0.hasPrefix("Subject") || $0.hasPrefix(" ")
        }
        #expect(subject.count <= 7)
    }

    @Test(arguments: Seeds.random(1, for: "generated notices"))
    func generatedTextsMakeValidMessages(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<1_000 {
            let json = Data(GeneratedTexts.json(&random).utf8)
            guard let text = try? JSONDecoder().decode(String.self, from: json) else { continue }
            let bytes = Array(try message(text).utf8)
            let head = bytes.prefix(bytes.firstRange(of: Array("\r\n\r\n".utf8))?.lowerBound ?? 0)
            let lines = head.split(separator: 0x0A)
            #expect(lines.filter { $0.first != 0x20 }.count == 9)
            #expect(bytes.split(separator: 0x0A).allSatisfy { $0.count <= 77 })
            #expect(bytes.allSatisfy { (0x20..<0x7F).contains($0) || $0 == 0x0D || $0 == 0x0A })
            let item = Shipment.Item(
                id: random.id(), notice: Notice(about: nil, code: .defectModified, text: text, timestamp: .now()))
            #expect(try NoticeBody.push(item).count <= PushMessage.textBytesMax)
        }
    }

    /// The message has part of the text, even if all of it is one Character.
    @Test func pushTextIsTruncatedByScalars() throws {
        let text = "Z" + String(repeating: "\u{301}", count: 20_000)
        let item = Shipment.Item(
            id: UUID(), notice: Notice(about: nil, code: .defectModified, text: text, timestamp: .now()))
        let count = try NoticeBody.push(item).count
        #expect(count <= PushMessage.textBytesMax && count > PushMessage.textBytesMax / 2)
    }

    @Test func digestHasALineForEachNotice() throws {
        let message = try message("One\nof two", "Two")
        #expect(message.contains("Subject: 2 notices\r\n"))
        #expect(
            message.hasSuffix("\r\n\r\n2026-11-23 07:30 UTC  One of two\r\n2026-11-23 07:30 UTC  Two\r\n"))
    }

    private struct DecodedMail: Decodable {
        let subject, text: String
    }

    private static func read(_ message: String) throws -> DecodedMail {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            """
            import email, email.policy, json, sys
            m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.SMTP)
            text = m.get_payload(decode=True).decode().replace("\\r\\n", "\\n")
            print(json.dumps({"subject": str(m["subject"]), "text": text}))
            """,
        ]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(message.utf8))
        try input.fileHandleForWriting.close()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return try JSONDecoder().decode(DecodedMail.self, from: data)
    }
}

extension String {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespaces) }
}
