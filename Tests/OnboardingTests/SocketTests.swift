import Foundation
import NIOCore
import Postgres
import TestSupport
import Testing

@testable import HTTPServer
@testable import Onboarding
@testable import Sandbox
@testable import ServiceRuntime
@testable import Telemetry

/// WebSocket frames that violate RFC 6455 or exceed the limits.
@Suite(.ownThreads) struct SocketTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let closeCode: Int
        let send: @Sendable (TestSocket) async throws -> Void
    }

    static let attacks = [
        Attack(testDescription: "no mask", closeCode: 1002) {
            try await $0.frame(0x81, Array("{}".utf8), isMasked: false)
        },
        Attack(testDescription: "a reserved bit", closeCode: 1002) { try await $0.frame(0xC1, Array("{}".utf8)) },
        Attack(testDescription: "a reserved opcode", closeCode: 1002) { try await $0.frame(0x83, []) },
        Attack(testDescription: "a reserved control opcode", closeCode: 1002) { try await $0.frame(0x8B, []) },
        Attack(testDescription: "binary", closeCode: 1003) { try await $0.frame(0x82, [1, 2, 3]) },
        Attack(testDescription: "a continuation without a message", closeCode: 1002) { try await $0.frame(0x80, [1]) },
        Attack(testDescription: "a message within a message", closeCode: 1002) {
            try await $0.frame(0x01, Array("{".utf8))
            try await $0.frame(0x81, Array("{}".utf8))
        },
        Attack(testDescription: "a fragmented ping", closeCode: 1002) { try await $0.frame(0x09, [1]) },
        Attack(testDescription: "a long ping", closeCode: 1002) {
            try await $0.frame(0x89, Array(repeating: 0, count: 126))
        },
        Attack(testDescription: "a frame too long", closeCode: 1009) {
            try await $0.frame(0x81, Array(repeating: 0x20, count: 4_097))
        },
        Attack(testDescription: "a length of 2^63", closeCode: 1009) {
            try await $0.raw([0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        },
        Attack(testDescription: "a message too long in frames", closeCode: 1009) { socket in
            for index in 0..<5 {
                try await socket.frame(index == 0 ? 0x01 : 0x00, Array(repeating: 0x20, count: 1_000))
            }
        },
        Attack(testDescription: "endless empty fragments", closeCode: 1009) { socket in
            for index in 0..<40 { try? await socket.frame(index == 0 ? 0x01 : 0x00, []) }
        },
        Attack(testDescription: "not UTF-8", closeCode: 1007) { try await $0.frame(0x81, [0xFF, 0xFE]) },
        Attack(testDescription: "an overlong encoding", closeCode: 1007) { try await $0.frame(0x81, [0xC0, 0x80]) },
        Attack(testDescription: "not JSON", closeCode: 1007) { try await $0.send("hello") },
        Attack(testDescription: "another shape", closeCode: 1007) { try await $0.send(#"{"acknowledge":"x"}"#) },
        Attack(testDescription: "a number out of range", closeCode: 1007) {
            try await $0.send(#"{"acknowledge":1e99}"#)
        },
        Attack(testDescription: "a flood of pings", closeCode: 1008) { socket in
            for _ in 0..<300 { try? await socket.frame(0x89, []) }
        },
    ]

    @Test(arguments: attacks) func invalidFrameClosesSocket(attack: Attack) async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            try await attack.send(socket)
            #expect(try await socket.ended() == attack.closeCode)
            // The session is still usable.
            let second = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            try await second.event("token")
        }
    }

    @Test func fragmentedMessageWithPingsIsAccepted() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            _ = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            let token = try await socket.event("token")
            let text = Array("{\"acknowledge\":\(token.id)}".utf8)
            try await socket.frame(0x01, Array(text[..<3]))
            try await socket.frame(0x89, [7])
            try await socket.frame(0x00, [])
            try await socket.frame(0x00, Array(text[3..<9]))
            try await socket.frame(0x80, Array(text[9...]))
            try await eventually("the event is acknowledged") {
                try fixture.count(
                    "SELECT count(*) FROM onboarding.event WHERE name = 'token' AND payload IS NULL") == 1
            }
            // Acknowledgements of foreign ids have no effect.
            try await socket.acknowledge(token.id + 1_000)
            try await socket.acknowledge(-1)
            try await fixture.initializeWhenRegistered()
            try await socket.event("data ready")
        }
    }

    @Test func unresponsiveClientIsDisconnected() async throws {
        var limits = OnboardingLimits.quick
        limits.socket.pingInterval = .milliseconds(100)
        limits.socket.responseMax = .seconds(10)
        try await withOnboarding(limits: limits) { fixture in
            let device = try await TestDevice(fixture)
            let quiet = try await device.connect()
            let lively = try await TestDevice(fixture).connect()
            await quiet.ignorePings()
            #expect(try await quiet.ended() == nil)
            #expect(await !lively.isEnded)
            try await lively.wait("pings") { $0.pingCount > 3 }
        }
    }

    /// The send buffer of a client that does not read is limited.
    @Test func nonReadingClientIsDisconnected() async throws {
        var limits = OnboardingLimits.quick
        limits.socket.pingInterval = .milliseconds(100)
        limits.socket.responseMax = .seconds(10)
        try await withOnboarding(limits: limits) { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await TestSocket(
                port: fixture.ports[0], path: "/sessions/\(device.session)", reads: false)
            try await eventually("the socket is open") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE socket > 0") == 1
            }
            // Each ping requires a pong, which the client does not read.
            for _ in 0..<200 { try? await socket.frame(0x89, Array(repeating: 7, count: 125)) }
            try await eventually("the server closes the connection") { await socket.isDisconnected }
        }
    }

    @Test(arguments: [
        ("GET", "Sec-WebSocket-Version: 8", 400...426), ("POST", "Sec-WebSocket-Version: 13", 400...426),
    ]) func invalidHandshakeIsRejected(method: String, version: String, statuses: ClosedRange<Int>) async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await TestSocket(
                port: fixture.ports[0], path: "",
                handshake: "\(method) /sessions/\(device.session) HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                    + "Connection: Upgrade\r\n\(version)\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            #expect(statuses.contains(await socket.status))
        }
    }
}
