import BackendHTTP
import BackendProtocol
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import Backends

/// Classification of statuses, bodies and dates, without a server.
@Suite(.ownThreads) struct SAPResponseTests {
    static let gateway = #"{"error":{"code":"LR/123","message":{"lang":"en","value":"No"}}}"#
    static let noService = #"{"error":{"code":"/IWFND/MED/170","message":{"lang":"en","value":"No service found"}}}"#

    @Test(arguments: [
        (201, gateway, true, "none"), (400, gateway, true, "refused"), (404, gateway, true, "refused"),
        (409, gateway, true, "refused"), (422, gateway, true, "refused"), (400, gateway, false, "notProcessed"),
        (404, "<html>", true, "notProcessed"), (404, noService, true, "notProcessed"),
        (401, gateway, true, "unauthorized"), (403, "", false, "unauthorized"), (302, "", true, "unauthorized"),
        (408, "", true, "notProcessed"), (429, "", true, "notProcessed"), (500, gateway, true, "outcomeUnknown"),
        (503, gateway, true, "outcomeUnknown"), (504, "", true, "outcomeUnknown"),
        (500, gateway, false, "notProcessed"), (503, "", false, "notProcessed"),
    ]) func statusDeterminesError(status: Int, body: String, isWrite: Bool, kind: String) {
        var actual = "none"
        do throws(BackendError) {
            try SAPResponse.check(response(status, [], body), isWrite: isWrite)
        } catch {
            actual = error.kind
        }
        #expect(actual == kind)
    }

    @Test func detailsAreUniqueMessagesWithoutWarnings() {
        let body = #"""
            {"error":{"code":"X","message":{"lang":"en","value":"Main"},"innererror":{"errordetails":[
              {"code":"1","message":"First","severity":"error"},{"code":"2","message":"Careful","severity":"warning"},
              {"code":"3","message":"Second"},{"code":"1","message":"First","severity":"error"}]}}}
            """#
        #expect(SAPResponse.messages(of: response(400, [], body)) == ["First", "Second"])
        #expect(SAPResponse.messages(of: response(400, [], Self.gateway)) == ["No"])
        #expect(SAPResponse.messages(of: response(418, [], "")) == ["HTTP 418"])
    }

    @Test(arguments: [
        (["Retry-After: 7"], 7), (["Retry-After: -1"], nil), (["Retry-After: soon"], nil), ([], nil),
        (["Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 08:49:07 GMT"], 30),
        (["Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Sun, 06 Nov 1994 09:00:00 GMT"], 0),
        (["Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"], nil),
    ]) func retryAfterIsSecondsOrADate(headers: [String], seconds: Int?) {
        #expect(BackendResponse.retryAfter(of: response(429, headers, "")) == seconds.map { .seconds($0) })
    }

    @Test(arguments: [
        ("/Date(1427673600000)/", "2015-03-30"), ("/Date(1427673600000+0120)/", "2015-03-30"),
        ("/Date(-86400000)/", "1969-12-31"), ("/Date(x)/", nil), ("2015-03-30", nil),
    ]) func datesAreMillisecondsOfMidnight(text: String, day: String?) {
        #expect(SAPTime.day(text)?.description == day)
        if let day = day.flatMap({ Day($0) }) { #expect(SAPTime.day(SAPTime.date(day)) == day) }
    }

    @Test(arguments: [
        ("10", BackendStatus.inProcess), ("20", .released), ("30", .approved), ("40", .rejected), ("50", .changed),
        ("60", .cancelled), ("70", nil),
    ]) func statusesAreThoseOfCATS(code: String, status: BackendStatus?) {
        #expect(BackendStatus(sap: code) == status)
    }

    @Test func nameDeterminesID() {
        // RFC 9562, A.4
        let dns = UUID(uuidString: "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
        #expect(
            dns.map { UUID(name: "www.example.com", in: $0) }
                == UUID(uuidString: "2ed6657d-e927-568b-95e1-2665a8aea6a2"))
    }

    @Test func settingsDoNotDisclosePassword() {
        #expect(!"\(SAPSettings(baseURL: "https://sap/", user: "u", password: "secret"))".contains("secret"))
    }

    private func response(_ status: Int, _ headers: [String], _ body: String) -> Response {
        let head = (["HTTP/1.1 \(status) X"] + headers).map { $0 + "\r\n" }.joined() + "\r\n"
        return Response(status: status, head: Array(head.utf8), body: Array(body.utf8))
    }
}
