import Glibc
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

private func logger() -> Logger {
    Logger(label: "test") { LineLogHandler(label: $0, service: "test", level: .info, format: .json) }
}

@Suite(.ownThreads) struct ShutdownTests {
    @Test func stubbornWorkerIsNamedAndProcessExitsInTime() async throws {
        let result = try #require(
            await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
                let stubborn = Component.worker("stubborn") { control in
                    control.progressed()
                    kill(getpid(), SIGTERM)
                    while true { _ = poll(nil, 0, 1000) }
                }
                _ = await ServiceRuntime.run(
                    [stubborn], logger: logger(), health: Health(stallMax: .seconds(60)),
                    shutdownMax: .milliseconds(300))
            })
        let log = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(log.contains("shutdown timed out") && log.contains(#""running":"stubborn""#))
    }

    @Test func failedComponentStopsTheOthers() async throws {
        let result = try #require(
            await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
                let patient = Component.worker("patient") { control in
                    while !control.isStopping { control.pause(.seconds(600)) }
                }
                let server = Component.http("api", host: "192.0.2.1", port: 0) { _ in }
                exit(
                    await ServiceRuntime.run(
                        [patient, server], logger: logger(), health: Health(stallMax: .seconds(60)),
                        shutdownMax: .seconds(200)))
            })
        let log = String(decoding: result.standardErrorContent, as: UTF8.self)
        #expect(log.contains("api cannot listen on 192.0.2.1:0") && !log.contains("shutdown timed out"))
    }

    /// The connection was accepted just when the server stopped listening.
    @Test(arguments: [true, false]) func unhandledConnectionDoesNotTrap(isActive: Bool) async throws {
        if isActive {
            await #expect(processExitsWith: .exitCode(7)) { try await Self.drop(isActive: true) }
        } else {
            await #expect(processExitsWith: .exitCode(7)) { try await Self.drop(isActive: false) }
        }
    }

    private static func drop(isActive: Bool) async throws -> Never {
        let http = HTTP1Channel(responder: { _, _, _ in }, configuration: HTTP1Channel.Configuration())
        let retained = RetainedChannel(inner: http)
        let channel = EmbeddedChannel()
        _ = try await retained.setup(channel: channel, logger: Logger(label: "test")).get()
        if isActive { try await channel.connect(to: SocketAddress(unixDomainSocketPath: "/x")).get() }
        _ = try? channel.finish(acceptAlreadyClosed: true)
        exit(7)
    }
}
