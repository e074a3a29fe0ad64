import Essentials
import Foundation
import HTTPClient
import HTTPServer
import Model
import Postgres
import ServiceRuntime
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Who is not known, and what strangers can find out.
@Suite(.ownThreads) struct UnknownPeopleTests {
    @Test func aStrangerCannotTellWhoIsKnown() async throws {
        try await withOnboarding { fixture in
            var shapes: Set<[String]> = []
            for email in [OnboardingFixture.known, OnboardingFixture.unknown] {
                let answer = try await TestDevice.register(fixture, email)
                let json = try #require(try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any])
                let url = try #require(json["login_url"] as? String)
                let names = FormFields(URL(string: url)?.query ?? "")?.items.map(\.name) ?? []
                let headers = answer.headers.map(\.name).filter { $0.lowercased() != "date" }
                shapes.insert(["\(answer.status)"] + json.keys.sorted() + names + headers)
                // Nothing is told before the login, known or not.
                let device = try await TestDevice(fixture, email)
                let socket = try await device.connect()
                try await eventually("the session was looked at") {
                    try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 0
                }
                #expect(await socket.events.isEmpty)
            }
            #expect(shapes.count == 1)
            #expect(try fixture.isRegistered(OnboardingFixture.known))
            #expect(try !fixture.isRegistered(OnboardingFixture.unknown))
            #expect(try fixture.count("SELECT count(*) FROM onboarding.event") == 0)
        }
    }

    /// Medians of interleaved requests: what differs between the two must be lost in what differs anyway. What else the
    /// machine does may tell them apart in one measurement; what the answer tells is there in each.
    @Test func theTimeOfAnAnswerDoesNotTellEither() async throws {
        try await withOnboarding { fixture in
            var differences: [String] = []
            for measurement in 0..<4 {
                guard let difference = try await difference(fixture, measurement) else { return }
                differences.append(difference)
            }
            Issue.record("\(differences)")
        }
    }

    /// How the times of those who are known differ from the others'; `nil` when they cannot be told apart.
    private func difference(_ fixture: OnboardingFixture, _ measurement: Int) async throws -> String? {
        let people = (0..<80).map { "\(measurement)-\($0)@example.com" }
        try fixture.withDatabase { connection in
            _ = try connection.run(
                "INSERT INTO backend.person SELECT 1, 'known' || e, '{}' FROM unnest(\(people)) AS u(e)")
        }
        var times: [String: [Duration]] = [:]
        for person in people {
            for kind in ["known", "unknown"].shuffled() {
                let start = ContinuousClock.now
                _ = try await TestDevice.register(fixture, kind + person)
                times[kind, default: []].append(.now - start)
            }
        }
        let known = try #require(times["known"]?.sorted())
        let unknown = try #require(times["unknown"]?.sorted())
        // The medians lie well within the middle of each other's times.
        let isAlike =
            known[40] > unknown[8] && known[40] < unknown[72] && unknown[40] > known[8] && unknown[40] < known[72]
        return isAlike ? nil : "\(known[40]) against \(unknown[40])"
    }

    @Test func whomTheBackEndDoesNotKnowHearsOfItAfterTheLogin() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture, OnboardingFixture.unknown)
            let socket = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL, as: OnboardingFixture.unknown)
            try await socket.event("token")
            let event = try await socket.event("error")
            #expect(event.payload["code"] == "person-unknown" && event.payload["login_url"] == nil)
            #expect(try !fixture.isRegistered(OnboardingFixture.unknown))
        }
    }

    /// An integration looks after the environment: whom it knows is its matter, and its people are those who log in.
    @Test(arguments: ["true", "false"]) func withoutABackEndWhoeverLogsInIsKnown(hidesUnknown: String) async throws {
        try await withOnboarding(settings: "hide_unknown = \(hidesUnknown)") { fixture in
            try fixture.withDatabase { _ = try $0.run("DELETE FROM backend.connection") }
            let email = OnboardingFixture.unknown
            let device = try await TestDevice(fixture, email)
            let socket = try await device.connect()
            try await eventually("the session was looked at") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 0
            }
            #expect(try !fixture.isRegistered(email))
            #expect(try await TestBrowser(fixture: fixture).logIn(at: device.loginURL, as: email).status == 200)
            try await fixture.initializeWhenRegistered(email)
            try await socket.event("data ready")
            #expect(await socket.events.map(\.name) == ["token", "realm initialized", "data ready"])
        }
    }

    @Test func anEnvironmentMaySayWhoIsKnown() async throws {
        try await withOnboarding(settings: "hide_unknown = false") { fixture in
            let answer = try await TestDevice.register(fixture, OnboardingFixture.unknown)
            #expect(answer.status == 404)
            #expect(String(decoding: answer.body, as: UTF8.self).contains("person-unknown"))
            // Then a device hears of its realm before the login, too.
            let socket = try await TestDevice(fixture).connect()
            try await socket.event("realm initialized")
            try fixture.initialize()
            try await socket.event("data ready")
            #expect(await socket.events.map(\.name) == ["realm initialized", "data ready"])
        }
    }

    @Test(arguments: [
        (#"{"email": "ana@elsewhere.example"}"#, 404, "organisation-unknown"),
        (#"{"email": "ana@sub.example.com"}"#, 404, "organisation-unknown"),
        (#"{"email": "ana@example.com.evil.example"}"#, 404, "organisation-unknown"),
        (#"{"email": "\u212Aarl@example.com"}"#, 400, "email-unusable"),
        (#"{"email": "ana@example.com\r\nX: y"}"#, 400, "email-unusable"),
        (#"{"email": ""}"#, 400, "email-unusable"), (#"{"email": 1}"#, 400, "malformed-request"),
        (#"{"mail": "ana@example.com"}"#, 400, "malformed-request"), ("", 400, "malformed-request"),
        ("[]", 400, "malformed-request"), ("{\"email\": \"\u{0}\"}", 400, "malformed-request"),
    ]) func whatIsNoAddressHereIsRefused(body: String, status: Int, problem: String) async throws {
        try await withOnboarding { fixture in
            let answer = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device"), headers: [("Content-Type", "application/json")],
                    body: Array(body.utf8)))
            #expect(answer.status == status)
            #expect(answer.headers["Content-Type"] == "application/problem+json")
            #expect(String(decoding: answer.body, as: UTF8.self).contains(":\(problem)\""))
        }
    }

    /// Who is over its own bound counts no further against an address or a domain.
    @Test func oneClientCannotUseUpTheBoundsOfOthers() async throws {
        var limits = OnboardingLimits.quick
        limits.clientCountMax = 4
        limits.domainCountMax = 8
        limits.addressCountMax = 8
        try await withOnboarding(limits: limits) { fixture in
            for _ in 0..<20 {
                _ = try await TestDevice.register(fixture, OnboardingFixture.known, address: "2001:db8:1:2::1")
            }
            let other = try await TestDevice.register(fixture, OnboardingFixture.known, address: "198.51.100.7")
            #expect(other.status == 200)
            // The other addresses of an IPv6 network are the same client.
            let same = try await TestDevice.register(fixture, "bo@example.com", address: "2001:db8:1:2:3:4:5:6")
            #expect(same.status == 429)
            #expect(try fixture.count("SELECT count(*) FROM onboarding.rate") == 5)
        }
    }

    @Test(arguments: [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8::1", "2001:db8:0:0::/64"), ("::1", "0:0:0:0::/64"),
        ("fe80::", "fe80:0:0:0::/64"), ("192.0.2.1", "192.0.2.1"), ("unknown", "unknown"),
    ]) func aClientIsAnIPv4AddressOrAnIPv6Network(address: String, network: String) {
        #expect(ClientAddress.network(of: address) == network)
    }

    @Test func registrationsAreLimitedPerAddressDomainAndClientOverAllInstances() async throws {
        for limit in [\OnboardingLimits.addressCountMax, \.clientCountMax] {
            var limits = OnboardingLimits.quick
            limits[keyPath: limit] = 4
            try await withOnboarding(instances: 2, limits: limits) { fixture in
                var statuses: [Int] = []
                for index in 0..<6 {
                    let answer = try await TestDevice.register(fixture, OnboardingFixture.known, instance: index % 2)
                    statuses.append(answer.status)
                    if answer.status == 429 { #expect(answer.headers["Retry-After"] == "60") }
                }
                #expect(statuses == [200, 200, 200, 200, 429, 429])
                // What is limited is what was exceeded, and nothing else.
                let other = try await TestDevice.register(fixture, "bo@example.com", address: "198.51.100.7")
                #expect(other.status == 200)
            }
        }
    }

    /// A person whose address, or whose domain, strangers register from many network addresses gets in.
    @Test func registrationsOfStrangersDoNotLockAPersonOut() async throws {
        var limits = OnboardingLimits.quick
        (limits.addressCountMax, limits.domainCountMax) = (2, 8)
        try await withOnboarding(limits: limits) { fixture in
            for stranger in 0..<6 {
                var statuses: [Int] = []
                for _ in 0..<3 {
                    let answer = try await TestDevice.register(
                        fixture, OnboardingFixture.known, address: "198.51.100.\(stranger)")
                    statuses.append(answer.status)
                }
                #expect(statuses == [200, 200, 429], "\(stranger)")
            }
            // The domain's limit is passed: a network address has a few left, and not more.
            var statuses: [Int] = []
            for number in 0..<4 {
                let email = number == 0 ? OnboardingFixture.known : "p\(number)@example.com"
                statuses.append(try await TestDevice.register(fixture, email, address: "192.0.2.1").status)
            }
            #expect(statuses == [200, 200, 429, 429])
        }
    }
}
