import Foundation
import Model
import Testing

@Suite struct DeliveryChoiceTests {
    private static let point = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let auth = "BTBZMqHH6r4Tts7J_aSIgg"

    private static func objection(_ json: String) -> String? {
        Kind.deliveryChoice.objection(to: Array(json.utf8))
    }

    private static func push(
        _ endpoint: String = "https://push.example.net/1", _ point: String = point, _ auth: String = auth
    ) -> String {
        #"{"endpoint":"\#(endpoint)","p256dh":"\#(point)","auth":"\#(auth)"}"#
    }

    @Test(arguments: [
        "{}", #"{"webhook":null,"email":null,"pushes":null,"digestAt":null,"quietHours":null,"timeZone":null}"#,
        #"{"webhook":"https://hooks.example.com:8443/a/b?c=d%20e"}"#,
        #"{"digestAt":"00:00","quietHours":"23:59-00:00"}"#,
        #"{"excludedCodes":null}"#, #"{"excludedCodes":["task-changed","a-code-of-later"]}"#,
        #"{"timeZone":"UTC"}"#, #"{"timeZone":"America/Argentina/Buenos_Aires"}"#, #"{"timeZone":"Etc/GMT+5"}"#,
    ]) func validChoiceIsAccepted(json: String) { #expect(Self.objection(json) == nil) }

    @Test(arguments: [
        "http://hooks.example.com/", "https://", "https:///a", "https://me@hooks.example.com/",
        "https://me:secret@hooks.example.com/", "https://hooks.example.com/#a", "https://hooks.example.com\\\\@evil/",
        "https://[::1]/", "https://hooks.example.com:0/", "https://hooks.example.com:65536/", "https://a:b:1/",
        "https://hooks.example.com:/", "https://hooks.example.com/a b", "https://hooks%2eexample.com/",
        "https://zähler.example.com/", "HTTPS://hooks.example.com/", "https://a/\\r\\nX: y",
        "https://a/" + String(repeating: "a", count: 2_048), "https://localhost./", "https://127.0.0.1./",
        "https://hooks.example.com./", "https://hooks.example.com.:443/", "https://./", "https://a..b/", "https://.a/",
        "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/",
        "https://127.0.0.01/", "https://127.0.0.0x1/", "https://127.0.0.256/", "https://1.2.3.4.5/", "https://a.1/",
        "https://-a/", "https://a-.example.com/", "https://\(String(repeating: "a", count: 64)).example.com/",
        "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[fe80::1%25lo]/",
    ]) func unusualAddressIsRejected(address: String) {
        #expect(Self.objection(#"{"webhook":"\#(address)"}"#)?.contains("'webhook'") == true)
        let push = Self.push(address)
        #expect(Self.objection(#"{"pushes":[\#(push)]}"#)?.contains("'endpoint'") == true)
    }

    @Test func excludedCodesAreLimited() {
        func objection(_ codes: [String]) -> String? {
            Self.objection(#"{"excludedCodes":["\#(codes.joined(separator: "\",\""))"]}"#)
        }
        let codes = (1...DeliveryChoice.excludedCodesCountMax).map { "code-\($0)" }
        #expect(objection(codes) == nil && objection([String(repeating: "c", count: 64)]) == nil)
        #expect(objection(codes + ["one-more"])?.contains("at most 32 codes") == true)
        #expect(objection([String(repeating: "c", count: 65)])?.contains("'excludedCodes'") == true)
    }

    @Test func browserSubscriptionsAreValidated() {
        #expect(Self.objection(#"{"pushes":[\#(Self.push())]}"#) == nil)
        let wrong = [
            (Self.push("https://a/", "AA"), "'p256dh'"), (Self.push("https://a/", Self.auth), "'p256dh'"),
            (Self.push("https://a/", Self.point, "AA"), "'auth'"),
            (Self.push() + "," + Self.push(), "each browser once"),
            ((0..<9).map { Self.push("https://a/\($0)") }.joined(separator: ","), "at most 8"),
        ]
        for (pushes, reason) in wrong {
            #expect(Self.objection(#"{"pushes":[\#(pushes)]}"#)?.contains(reason) == true, "\(reason)")
        }
    }

    @Test func devicesAreValidated() {
        let (token, device) = (String(repeating: "a1", count: 32), String(repeating: "0f", count: 32))
        func target(_ token: String, service: String = "apns", device other: String? = nil) -> String {
            #"{"service":"\#(service)","token":"\#(token)","device":"\#(other ?? device)"}"#
        }
        for valid in [
            target(token), target("fcm:APA91b-_Z", service: "fcm"),
            target(String(repeating: "a", count: 2_048), service: "fcm"),
        ] {
            #expect(Self.objection(#"{"devices":[\#(valid)]}"#) == nil, "\(valid)")
        }
        let wrong = [
            (target(""), "'token'"), (target("abc"), "'token'"), (target(token.uppercased()), "'token'"),
            (target(token + "/../x"), "'token'"), (target(String(repeating: "a", count: 202)), "'token'"),
            (target("a b", service: "fcm"), "'token'"),
            (target(String(repeating: "a", count: 2_049), service: "fcm"), "'token'"),
            (target(token, device: "0f"), "'device'"), (target(token, device: device.uppercased()), "'device'"),
            (target(token) + "," + target(token), "each token once"),
            ((10..<19).map { target(token + "\($0)") }.joined(separator: ","), "at most 8"),
        ]
        for (devices, reason) in wrong {
            #expect(Self.objection(#"{"devices":[\#(devices)]}"#)?.contains(reason) == true, "\(reason)")
        }
        #expect(Self.objection(#"{"devices":[\#(target(token, service: "wns"))]}"#) != nil, "an unknown service")
    }

    @Test(arguments: [
        (#"{"digestAt":"7:30"}"#, "'digestAt'"), (#"{"digestAt":"24:00"}"#, "'digestAt'"),
        (#"{"digestAt":"07:60"}"#, "'digestAt'"), (#"{"digestAt":"07:3٠"}"#, "'digestAt'"),
        (#"{"quietHours":"22:00"}"#, "'quietHours'"), (#"{"quietHours":"22:00-22:00"}"#, "'quietHours'"),
        (#"{"quietHours":"22:00-25:00"}"#, "'quietHours'"), (#"{"quietHours":"22:00-06:00-07:00"}"#, "'quietHours'"),
        (#"{"timeZone":"+02:00"}"#, "'timeZone'"), (#"{"timeZone":""}"#, "'timeZone'"),
        (#"{"timeZone":"../../etc/passwd"}"#, "'timeZone'"), (#"{"timeZone":"Europe//Oslo"}"#, "'timeZone'"),
    ]) func timesAreValidated(json: String, reason: String) {
        #expect(Self.objection(json)?.contains(reason) == true, "\(Self.objection(json) ?? "accepted")")
    }

    @Test func hostIsParsedFromAddress() {
        #expect(SecureAddress("https://Hooks.Example.com:8443/a")?.host == "hooks.example.com")
        #expect(SecureAddress("https://hooks.example.com?a=https://b")?.host == "hooks.example.com")
        #expect(SecureAddress("https://hooks.example.com")?.host == "hooks.example.com")
        for host in [
            "localhost", "127.0.0.1", "8.8.8.8", "a1.b2", "0xa.example.com", "1.example.com", "xn--zhler-gra.de",
        ] {
            #expect(SecureAddress("https://\(host):8443/")?.host == host)
        }
    }
}
