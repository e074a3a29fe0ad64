import BackendHTTP
import BackendProtocol
import Essentials
import FoundationEssentials
import HTTPClient
import HTTPServer
import Model
import TestSupport
import Testing

@testable import Backends

/// Malformed and oversized responses, which must be rejected or truncated, and must not end the process.
@Suite(.ownThreads) struct MalformedResponseTests {
    private static let day = 86_400

    // MARK: Headers

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
        ("Sun, 06 Nov 1994 9223372036854775807:0:0 GMT", nil), ("Sun, 06 Nov 1994 0:9223372036854775807:0 GMT", nil),
        ("Sun, 06 Nov 1994 0:0:9223372036854775807 GMT", nil), ("Sun, 06 Nov 1994 -1:00:00 GMT", nil),
        ("Sun, 06 Nov 1994 24:00:00 GMT", nil), ("Sun, 06 Nov 1994 08:60:00 GMT", nil),
        ("Sun, 06 Nov 1994 08:49:61 GMT", nil), ("Sun, 06 Nov 1994 08:x:49:37 GMT", nil),
        ("Sun, 06 Nov 1994 08:49 GMT", nil), ("Sun, 06 Nov 1994 08::49:37 GMT", nil),
        ("Sun, 9223372036854775807 Nov 1994 08:49:37 GMT", nil), ("Sun, -1 Nov 1994 08:49:37 GMT", nil),
        ("Sun, 31 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Now 1994 08:49:37 GMT", nil),
        ("Sun, 06 Nov 9223372036854775807 08:49:37 GMT", nil), ("Sun, 06 Nov 0 08:49:37 GMT", nil),
        ("Sun, 06 Nov 10000 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("a b c d e GMT", nil),
        ("", nil), (String(repeating: " ", count: 10_000), nil),
    ]) func aDateIsReadAsItIsOrNotAtAll(text: String, seconds: Int?) {
        #expect(Timestamp.seconds(ofHTTPDate: text) == seconds)
    }

    /// The maximum delay is a day, regardless of the header.
    @Test(arguments: [
        ("86400", day), ("86401", day), ("9223372036854775807", day), ("99999999999999999999999999", day),
        ("-1", nil), ("-9223372036854775808", nil), ("-99999999999999999999999999", nil), ("+7", nil), ("7.5", nil),
        ("1e400", nil), ("٧", nil), ("", nil), ("Fri, 31 Dec 9999 23:59:59 GMT", day),
        ("Sat, 01 Jan 0001 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 9223372036854775807:0:0 GMT", nil),
    ]) func retryAfterIsBounded(value: String, seconds: Int?) {
        let headers = ["Date: Sun, 06 Nov 1994 08:49:07 GMT", "Retry-After: " + value]
        #expect(BackendResponse.retryAfter(of: response(429, "", headers)) == seconds.map { .seconds($0) })
    }

    @Test func malformedDateInvalidatesRetryAfterDate() {
        let headers = [
            "Date: Sun, 06 Nov 1994 9223372036854775807:0:0 GMT", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT",
        ]
        #expect(BackendResponse.retryAfter(of: response(503, "", headers)) == nil)
    }

    // MARK: Days and hours

    @Test(arguments: [
        ("/Date(-1)/", "1969-12-31"), ("/Date(-86400001)/", "1969-12-30"), ("/Date(253402300799999)/", "9999-12-31"),
        ("/Date(253402300800000)/", nil), ("/Date(-62135596800000)/", "0001-01-01"), ("/Date(-62135596800001)/", nil),
        ("/Date(9223372036854775807)/", nil), ("/Date(-9223372036854775807)/", nil),
        ("/Date(-9223372036854775808)/", nil), ("/Date(99999999999999999999)/", nil), ("/Date(1e400)/", nil),
        ("/Date()/", nil), ("/Date(-)/", nil), ("/Date(+-+-)/", nil), ("/Date(", nil), (")/", nil), ("", nil),
    ]) func aDayOfSAPsIsReadAsItIsOrNotAtAll(text: String, day: String?) {
        #expect(SAPTime.day(text)?.description == day)
    }

    @Test(arguments: [
        "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e400", "nan", "inf", "-", ".", "",
        "1.005", "٧",
    ]) func malformedHoursOfSAPAreReported(hours: String) {
        #expect(throws: BackendError.self) { try sapEntry(hours: hours) }
    }

    /// The longest numbers of hours in both formats.
    @Test func longNumbersOfHoursAreDecoded() throws {
        #expect(try sapEntry(hours: "999999999.99").durationSeconds == 3_599_999_999_964)
        #expect(try sapEntry(hours: "-999999999.99").durationSeconds == -3_599_999_999_964)
        #expect(try economicEntry(hours: "9999999.99").durationSeconds == 35_999_999_964)
    }

    @Test(arguments: [
        "9223372036854775807", "-9223372036854775808", "99999999999999999999", "1e308", "-1e308", "1e400", "1e10",
        "\"NaN\"", "\"1\"", "[]",
    ]) func malformedHoursOfEconomicAreReported(hours: String) {
        #expect(throws: BackendError.self) { try economicEntry(hours: hours) }
    }

    @Test(arguments: ["number", "employeeNumber", "projectNumber"]) func tooLargeNumberIsUnreadable(name: String) {
        for number in ["9223372036854775808", "1e400", "0.5", "-1e19"] {
            let body = Self.economicEntry(hours: "1").replacing("\"\(name)\":1", with: "\"\(name)\":\(number)")
            #expect(throws: BackendError.self) {
                try BackendResponse.decode(EconomicTimeEntry.self, from: Array(body.utf8))
            }
        }
    }

    /// A time beyond the last representable day would otherwise become an unreadable cursor.
    @Test(arguments: [
        "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z", "-1", "9223372036854775807",
    ]) func cursorWithExtremeTimeStampsIsReadable(newest: String) {
        let began = 1_427_673_700
        var cursor = EconomicCursor(since: began - 100, choices: UUID())
        _ = cursor.advance(newest: EconomicTime.seconds(newest), at: began, next: "34781")
        #expect(EconomicCursor(cursor.description) == cursor)
        _ = cursor.advance(newest: nil, at: began + 10, next: nil)
        #expect((began - 100...began).contains(cursor.since) && cursor.pass == nil)
    }

    // MARK: Bodies

    @Test(arguments: [
        "", "null", "nan", "{\"d\":", "{\"d\":null}", "\u{0}", String(repeating: "[", count: 100_000),
        String(repeating: "{\"d\":", count: 100_000), String(repeating: "9", count: 100_000),
    ]) func malformedBodyIsReportedBriefly(body: String) {
        let bytes = Array(body.utf8)
        let errors = [
            #expect(throws: BackendError.self) {
                try BackendResponse.decode(ODataEntity<SAPTimeSheetEntry>.self, from: bytes)
            },
            #expect(throws: BackendError.self) { try BackendResponse.decode(EconomicTimeEntry.self, from: bytes) },
            #expect(throws: BackendError.self) { try SAPResponse.check(response(500, body), isWrite: true) },
            #expect(throws: BackendError.self) { try EconomicResponse.check(response(500, body), isWrite: true) },
        ]
        for error in errors { #expect("\(String(describing: error))".utf8.count < 5_000) }
    }

    @Test func unreadableValueIsTruncatedInReason() {
        let long = String(repeating: "x", count: 100_000)
        let errors = [
            #expect(throws: BackendError.self) { try sapEntry(hours: "1", status: long) },
            #expect(throws: BackendError.self) { try economicEntry(hours: "1", date: long) },
        ]
        for error in errors { #expect("\(String(describing: error))".utf8.count < 5_000) }
    }

    /// PostgreSQL does not store U+0000. Escaped backslashes are another text.
    @Test(arguments: [
        (#"N\u0000o"#, "N\u{FFFD}o"), (#"\u0000\u0000"#, "\u{FFFD}\u{FFFD}"), (#"\\u0000"#, #"\u0000"#),
        (#"\\\u0000"#, "\\\u{FFFD}"), (#"\u00001"#, "\u{FFFD}1"), (#"\u0001"#, "\u{1}"), ("plain", "plain"),
        (#"N\ud83do"#, "N\u{FFFD}o"), (#"\udc00\ud83d"#, "\u{FFFD}\u{FFFD}"), (#"\uD83D\uDE00"#, "😀"),
        (#"\ud83d\ud83d\ude00"#, "\u{FFFD}😀"), (#"\x41"#, "\u{FFFD}x41"), (#"\u+123"#, "\u{FFFD}u+123"),
        ("a\u{0}b\nc", "a\u{FFFD}b\nc"), ("Æ😀", "Æ😀"), (#"\""#, "\""),
    ]) func aTextWithNullCanBeStored(written: String, text: String) throws {
        let body = Array(#"{"value":"\#(written)"}"#.utf8)
        #expect(try BackendResponse.decode([String: String].self, from: body) == ["value": text])
    }

    @Test(
        arguments: [
            ([0xED, 0xA0, 0xBD], 3), ([0xED, 0x9F, 0xBF], 0), ([0xC0, 0xAF], 2), ([0xE0, 0x80, 0xAF], 3), ([0xFF], 1),
            ([0xF4, 0x90, 0x80, 0x80], 4), ([0xE2, 0x82], 2), ([0x80], 1), ([0xF0, 0x9F, 0x98, 0x80], 0),
        ] as [([UInt8], Int)]) func invalidUTF8IsReplaced(bytes: [UInt8], count: Int) throws
    {
        let read = try BackendResponse.decode([String].self, from: Array("[\"a".utf8) + bytes + Array("b\"]".utf8))[0]
        #expect(read.unicodeScalars.filter { $0 == "\u{FFFD}" }.count == count)
        #expect(read.hasPrefix("a") && read.hasSuffix("b"))
    }

    /// Values for which the decoder would reject the whole document.
    @Test(arguments: [
        String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000), "NaN", "+1", ".5", "0x1", "-",
        "1e400", "--", "'x'", "True", #"{"a":"}]"}"#,
    ]) func aValueThatIsNoneCostsItsRowAlone(value: String) throws {
        let body = #"{"items":[{"number":1},{"number":\#(value)},{"number":3}],"cursor":"4"}"#
        let page = try BackendResponse.decode(EconomicPage<NumberedRow>.self, from: Array(body.utf8))
        #expect(page.items?.map { $0.row?.number } == [1, nil, 3] && page.cursor == "4")
    }

    private struct NumberedRow: EconomicRow { let number: Int }

    // MARK: Messages

    /// Messages are displayed on every device: the truncated form.
    @Test(arguments: [
        ("No", "No"), (String(repeating: "x", count: 500), String(repeating: "x", count: 500)),
        (String(repeating: "x", count: 501), String(repeating: "x", count: 499) + "…"),
        (String(repeating: "x", count: 100_000), String(repeating: "x", count: 499) + "…"),
        // One visible character of many bytes.
        ("x" + String(repeating: "\u{301}", count: 100_000), "x" + String(repeating: "\u{301}", count: 498) + "…"),
        ("N\u{0}o", "N\u{FFFD}o"),
    ]) func longMessageIsTruncatedWithEllipsis(message: String, shown: String) throws {
        #expect(try sapRefusal(main: message) == [shown])
        #expect(try sapRefusal(main: "Main", details: [message]) == [shown])
        #expect(try economicRefusal(message) == [shown])
        let rejection = try sapEntry(hours: "1", status: "40", reason: message).message ?? ""
        #expect(rejection.unicodeScalars.count <= 500 && rejection.hasPrefix("Rejected: reason "))
        #expect(!rejection.unicodeScalars.contains("\0"))
    }

    @Test func excessMessagesAreTruncatedWithEllipsis() throws {
        let many = (1...1_000).map { "Problem \($0)" }
        #expect(try sapRefusal(main: "Main", details: Array(many.prefix(20))) == Array(many.prefix(20)))
        #expect(try sapRefusal(main: "Main", details: many) == many.prefix(19) + ["…"])
    }

    // MARK: Responses

    private func response(_ status: Int, _ body: String, _ headers: [String] = []) -> Response {
        let head = (["HTTP/1.1 \(status) X"] + headers).map { $0 + "\r\n" }.joined() + "\r\n"
        return Response(status: status, head: Array(head.utf8), body: Array(body.utf8))
    }

    private static func quoted(_ text: String) throws -> String {
        String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
    }

    private func refusal(_ check: () throws(BackendError) -> Void) -> [String] {
        do throws(BackendError) {
            try check()
        } catch .refused(let messages) {
            return messages
        } catch {
            Issue.record("\(error)")
        }
        return []
    }

    private func sapRefusal(main: String, details: [String] = []) throws -> [String] {
        let list = try details.map { #"{"code":"1","message":\#(try Self.quoted($0)),"severity":"error"}"# }
        let body = #"""
            {"error":{"code":"X","message":{"lang":"en","value":\#(try Self.quoted(main))},
             "innererror":{"errordetails":[\#(list.joined(separator: ","))]}}}
            """#
        return refusal { () throws(BackendError) in try SAPResponse.check(response(400, body), isWrite: true) }
    }

    private func economicRefusal(_ message: String) throws -> [String] {
        let body = #"{"errorCode":"X","message":\#(try Self.quoted(message)),"logId":"1"}"#
        return refusal { () throws(BackendError) in try EconomicResponse.check(response(400, body), isWrite: true) }
    }

    private func sapEntry(hours: String, status: String = "20", reason: String = "") throws -> BackendEntry {
        let body = #"""
            {"PersonWorkAgreementExternalID":"1","CompanyCode":"1","TimeSheetRecord":"1",
             "TimeSheetDate":"/Date(1427673600000)/","TimeSheetStatus":\#(try Self.quoted(status)),
             "TimeSheetDataFields":{"RecordedHours":"\#(hours)","RejectionReason":\#(try Self.quoted(reason))}}
            """#
        return try BackendEntry(
            try BackendResponse.decode(SAPTimeSheetEntry.self, from: Array(body.utf8)),
            FieldNames(SAPReporting.vocabulary.builtIn))
    }

    private func economicEntry(hours: String, date: String = "2015-03-30") throws -> BackendEntry {
        let body = Self.economicEntry(hours: hours, date: date)
        return try BackendEntry(
            try BackendResponse.decode(EconomicTimeEntry.self, from: Array(body.utf8)),
            FieldNames(EconomicReporting.vocabulary.builtIn))
    }

    private static func economicEntry(hours: String, date: String = "2015-03-30") -> String {
        #"""
        {"number":1,"employeeNumber":1,"projectNumber":1,"activityNumber":1,"date":"\#(date)","numberOfHours":\#(hours)}
        """#
    }
}
