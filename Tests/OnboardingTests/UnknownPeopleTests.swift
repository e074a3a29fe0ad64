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

/// Unknown people, and information that unauthenticated clients can get.
@Suite(.ownThreads) struct UnknownPeopleTests {
    @Test func registrationDoesNotRevealKnownPeople() async throws {
        try await withOnboarding { fixture in
            var shapes: Set<[String]> = []
            for email in [OnboardingFixture.known, OnboardingFixture.unknown] {
                let response = try await TestDevice.register(fixture, email)
                let json = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
                let url = try #require(json["login_url"] as? String)
                let names = FormFields(URL(string: url)?.query ?? "")?.items.map(\.name) ?? []
                let headers = response.headers.map(\.name).filter { $0.lowercased() != "date" }
                shapes.insert(["\(response.status)"] + json.keys.sorted() + names + headers)
                // No events before the login, known or not.
                let device = try await TestDevice(fixture, email)
                let socket = try await device.connect()
                try await eventually("the session is processed") {
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

    /// Compares medians of interleaved requests: the difference must be within the noise. Other load can cause a
    /// difference in one measurement; a leak appears in every measurement.
    @Test func registrationTimeDoesNotRevealKnownPeople() async throws {
        try await withOnboarding { fixture in
            var differences: [String] = []
            for measurement in 0..<4 {
                guard let difference = try await difference(fixture, measurement) else { return }
                differences.append(difference)
            }
            Issue.record("\(differences)")
        }
    }

    /// Returns the difference of the medians of known and unknown people; `nil` if they are indistinguishable.
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
        // Each median lies within the middle 80 % of the other's times.
        let isAlike =
            known[40] > unknown[8] && known[40] < unknown[72] && unknown[40] > known[8] && unknown[40] < known[72]
        return isAlike ? nil : "\(known[40]) against \(unknown[40])"
    }

    @Test func unknownPersonGetsErrorAfterLogin() async throws {
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

    /// An integration maintains the environment: each person who logs in counts as known.
    @Test(arguments: ["true", "false"]) func loginWithoutBackendRegistersPerson(hidesUnknown: String) async throws {
        try await withOnboarding(settings: "hide_unknown = \(hidesUnknown)") { fixture in
            try fixture.withDatabase { _ = try $0.run("DELETE FROM backend.connection") }
            let email = OnboardingFixture.unknown
            let device = try await TestDevice(fixture, email)
            let socket = try await device.connect()
            try await eventually("the session is processed") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 0
            }
            #expect(try !fixture.isRegistered(email))
            #expect(try await TestBrowser(fixture: fixture).logIn(at: device.loginURL, as: email).status == 200)
            try await fixture.initializeWhenRegistered(email)
            try await socket.event("data ready")
            #expect(await socket.events.map(\.name) == ["token", "realm initialized", "data ready"])
        }
    }

    @Test func environmentMayRevealKnownPeople() async throws {
        try await withOnboarding(settings: "hide_unknown = false") { fixture in
            let response = try await TestDevice.register(fixture, OnboardingFixture.unknown)
            #expect(response.status == 404)
            #expect(String(decoding: response.body, as: UTF8.self).contains("person-unknown"))
            // Then the device's events precede the login.
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
    ]) func unusableAddressIsRejected(body: String, status: Int, problem: String) async throws {
        try await withOnboarding { fixture in
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device"), headers: [("Content-Type", "application/json")],
                    body: Array(body.utf8)))
            #expect(response.status == status)
            #expect(response.headers["Content-Type"] == "application/problem+json")
            #expect(String(decoding: response.body, as: UTF8.self).contains(":\(problem)\""))
        }
    }

    /// Requests beyond the client's limit do not count against addresses and domains.
    @Test func clientCannotExhaustLimitsOfOthers() async throws {
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
    ]) func clientIsIPv4AddressOrIPv6Network(address: String, network: String) {
        #expect(ClientAddress.network(of: address) == network)
    }

    @Test func registrationsAreLimitedAcrossInstances() async throws {
        for limit in [\OnboardingLimits.addressCountMax, \.clientCountMax] {
            var limits = OnboardingLimits.quick
            limits[keyPath: limit] = 4
            try await withOnboarding(instances: 2, limits: limits) { fixture in
                var statuses: [Int] = []
                for index in 0..<6 {
                    let response = try await TestDevice.register(fixture, OnboardingFixture.known, instance: index % 2)
                    statuses.append(response.status)
                    if response.status == 429 { #expect(response.headers["Retry-After"] == "60") }
                }
                #expect(statuses == [200, 200, 200, 200, 429, 429])
                // Other limits are not affected.
                let other = try await TestDevice.register(fixture, "bo@example.com", address: "198.51.100.7")
                #expect(other.status == 200)
            }
        }
    }

    /// Registrations of a person's address or domain from many network addresses do not block the person.
    @Test func foreignRegistrationsDoNotBlockPerson() async throws {
        var limits = OnboardingLimits.quick
        (limits.addressCountMax, limits.domainCountMax) = (2, 8)
        try await withOnboarding(limits: limits) { fixture in
            for index in 0..<6 {
                var statuses: [Int] = []
                for _ in 0..<3 {
                    let response = try await TestDevice.register(
                        fixture, OnboardingFixture.known, address: "198.51.100.\(index)")
                    statuses.append(response.status)
                }
                #expect(statuses == [200, 200, 429], "\(index)")
            }
            // Beyond the domain's limit, a network address has a small allowance left.
            var statuses: [Int] = []
            for number in 0..<4 {
                let email = number == 0 ? OnboardingFixture.known : "p\(number)@example.com"
                statuses.append(try await TestDevice.register(fixture, email, address: "192.0.2.1").status)
            }
            #expect(statuses == [200, 200, 429, 429])
        }
    }
}
