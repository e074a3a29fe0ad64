import CoreMetrics
import Essentials
import HTTPClient
import Hummingbird
import Logging
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// Runs components for the duration of `body`, then shuts them down gracefully.
private func withRunning(
    _ components: [Component], health: Health,
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
    _ body: @escaping @Sendable () async throws -> Void
) async throws {
    let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let environment = ComponentEnvironment(logger: logger, health: health, eventLoops: loops)
    let services = components.map { $0.make(environment) }
    let group = ServiceGroup(services: services, logger: logger)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try await group.run() }
        do {
            try await body()
        } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
    }
    try await loops.shutdownGracefully()
}

private struct Failure: Error, CustomStringConvertible { let description: String }

@Suite(.ownThreads) struct ComponentTests {
    @Test func failedWorkerRestartsAndProcessBecomesReady() async throws {
        let health = Health(stallMax: .seconds(60))
        let runs = Atomic<Int>(0)
        let reason = Mutex<String?>(nil)
        let worker = Component.worker("loop", restart: Backoff(first: .milliseconds(1), waitMax: .milliseconds(20))) {
            control in
            if runs.add(1, ordering: .relaxed).newValue <= 5 { throw Failure(description: "away") }
            reason.withLock { $0 = $0 ?? health.reasons["loop/0"] }
            while !control.isStopping {
                control.progressed()
                control.pause(.seconds(30))
            }
        }
        try await withRunning([worker], health: health) {
            #expect(await eventually { runs.load(ordering: .relaxed) == 6 && health.reasons.isEmpty })
            #expect(reason.withLock { $0 } == "away")
            #expect(health.stalls().isEmpty)
        }
        #expect(runs.load(ordering: .relaxed) == 6)
    }

    /// Also if an attempt takes longer than the maximum backoff, as that of a client with a wrong password does.
    @Test func repeatedFailureIsLoggedOnceUntilRecovery() async throws {
        let runs = Atomic<Int>(0)
        let worker = Component.worker("loop", restart: Backoff(first: .zero, waitMax: .milliseconds(1))) { control in
            let run = runs.add(1, ordering: .relaxed).newValue
            if run == 10 { control.progressed() }
            control.pause(.milliseconds(3))
            throw Failure(description: run % 2 == 0 ? "first broker rejects" : "second broker rejects")
        }
        let log = LogCapture()
        try await withRunning([worker], health: Health(stallMax: .seconds(60)), logger: log.logger) {
            #expect(await eventually { runs.load(ordering: .relaxed) >= 20 })
        }
        let (first, second) = ("first broker rejects", "second broker rejects")
        #expect(log.errorEvents.map { $0.metadata["error"] } == [second, first, first, second])
    }

    @Test func finalErrorStopsProcessAndOtherWorkers() async throws {
        let worker = Component.worker("loop", count: 2, isFinal: { $0 is Failure }) { control in
            if control.index == 1 { throw Failure(description: "no such property") }
            while !control.isStopping { control.pause(.seconds(600)) }
        }
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let environment = ComponentEnvironment(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, health: Health(stallMax: .seconds(60)),
            eventLoops: loops)
        let error = await #expect(throws: Failure.self) { try await worker.make(environment).run() }
        try await loops.shutdownGracefully()
        #expect(error?.description == "no such property")
    }

    @Test func stopCallsHooks() async throws {
        let woken = Atomic<Bool>(false)
        let started = Atomic<Bool>(false)
        let worker = Component.worker("loop") { control in
            control.whenStopping { woken.store(true, ordering: .relaxed) }
            started.store(true, ordering: .relaxed)
            while !control.isStopping { control.pause(.seconds(600)) }
            // The hooks of an ended loop are not called.
            while !woken.load(ordering: .relaxed) { control.pause(.milliseconds(1)) }
        }
        try await withRunning([worker], health: Health(stallMax: .seconds(60))) {
            #expect(await eventually { started.load(ordering: .relaxed) })
        }
        let isWoken = woken.load(ordering: .relaxed)
        #expect(isWoken)
    }

    /// A worker's failed attempts leave no hooks, which keep descriptors open.
    @Test func restartRemovesHooks() async throws {
        let runs = Atomic<Int>(0)
        let staleCalls = Atomic<Int>(0)
        let calls = Atomic<Int>(0)
        let worker = Component.worker("loop", restart: Backoff(first: .zero, waitMax: .zero)) { control in
            guard runs.add(1, ordering: .relaxed).newValue >= 3 else {
                control.whenStopping { staleCalls.add(1, ordering: .relaxed) }
                throw Failure(description: "unavailable")
            }
            control.whenStopping { calls.add(1, ordering: .relaxed) }
            while !control.isStopping { control.pause(.seconds(600)) }
            // Hooks are called in order, and those of an ended loop not at all.
            while calls.load(ordering: .relaxed) == 0 { control.pause(.milliseconds(1)) }
        }
        try await withRunning([worker], health: Health(stallMax: .seconds(60))) {
            #expect(await eventually { runs.load(ordering: .relaxed) >= 3 })
        }
        let staleCount = staleCalls.load(ordering: .relaxed)
        #expect(staleCount == 0)
    }

    @Test func healthIsServed() async throws {
        let health = Health(stallMax: .seconds(60))
        let port = Atomic<Int>(0)
        let metrics = MetricsRegistry()
        let admin = AdminServer.component(host: "127.0.0.1", port: 0, health: health, metrics: metrics) {
            port.store($0, ordering: .relaxed)
        }
        try await withRunning([admin], health: health) {
            #expect(await eventually { port.load(ordering: .relaxed) != 0 })
            let port = port.load(ordering: .relaxed)
            #expect(await get("/health/ready", port: port).hasPrefix("HTTP/1.1 200"))
            health.ready(false, source: "db", reason: "no \"route\"")
            let response = await get("/health/ready", port: port)
            #expect(response.hasPrefix("HTTP/1.1 503") && response.contains(#""db":"no \"route\"""#))
            #expect(await get("/health/live", port: port).hasPrefix("HTTP/1.1 200"))
            #expect(await get("/metrics", port: port).contains("\nfieldpost_ready 0\n"))
            health.ready(true, source: "db")
            #expect(await get("/metrics", port: port).contains("\nfieldpost_ready 1\n"))
            health.shuttingDown()
            #expect(await get("/health/ready", port: port).contains("shutting down"))
            metrics.makeRecorder(label: "some.gauge", dimensions: [], aggregate: false).record(Int64(7))
            #expect(await get("/metrics", port: port).contains("\nsome_gauge 7\n"))
        }
    }

    @Test func stalledLoopIsNotLive() {
        let health = Health(stallMax: .seconds(60))
        let progress = health.watch("loop/0")
        let now = SteadyClock.nanoseconds()
        #expect(health.stalls(now: now + 59_000_000_000).isEmpty)
        #expect(health.stalls(now: now + 61_000_000_000).keys.sorted() == ["loop/0"])
        health.unwatch(progress)
        #expect(health.stalls(now: now + 61_000_000_000).isEmpty)
    }

    @Test func routeErrorsBecomeProblemDetails() async throws {
        let health = Health(stallMax: .seconds(60))
        let port = Atomic<Int>(0)
        let server = Component.http(
            "api", host: "127.0.0.1", port: 0, limits: HTTPLimits(bodyBytesMax: 10),
            started: { port.store($0, ordering: .relaxed) }
        ) { router in
            router.get("gap") { _, _ -> Response in
                throw Problem(
                    .conflict, name: "sequence-gap", detail: "a \"gap\"", extensions: ["expectedSequence": .integer(7)])
            }
            router.get("secret") { _, _ -> Response in throw Failure(description: "password") }
            router.post("body") { request, _ in "\(try await request.body.collect(upTo: 1000).readableBytes)" }
        }
        try await withRunning([server], health: health) {
            #expect(await eventually { port.load(ordering: .relaxed) != 0 })
            let port = port.load(ordering: .relaxed)
            let gap = await get("/gap", port: port)
            #expect(gap.hasPrefix("HTTP/1.1 409") && gap.contains("Content-Type: application/problem+json"))
            #expect(
                gap.hasSuffix(
                    #"{"type":"urn:fieldpost:problem:sequence-gap","title":"Conflict","status":409,"detail":"a \"gap\"","expectedSequence":7}"#
                ))
            #expect(!gap.contains("Server:"))
            let secret = await get("/secret", port: port)
            #expect(secret.hasPrefix("HTTP/1.1 500") && !secret.contains("password"))
            #expect(await get("/nothing", port: port).hasPrefix("HTTP/1.1 404"))
            let other = await get("/gap", port: port, method: "DELETE")
            #expect(other.hasPrefix("HTTP/1.1 405") && other.contains("Allow: GET\r\n"))
            let head = "POST /body HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            let chunked = head + "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n"
            #expect(await exchange(head + "Content-Length: 10\r\n\r\n0123456789", port: port).hasSuffix("\r\n10"))
            #expect(
                await exchange(head + "Content-Length: 11\r\n\r\n0123456789a", port: port).hasPrefix("HTTP/1.1 413"))
            #expect(await exchange(chunked, port: port).hasPrefix("HTTP/1.1 413"))
        }
    }

    @Test func backoffGrowsToMaximumAndResets() {
        var backoff = Backoff(first: .milliseconds(100), waitMax: .seconds(2))
        let waits = (0..<8).map { _ in backoff.failed(random: 1) }
        #expect(waits.map(\.milliseconds) == [100, 200, 400, 800, 1600, 2000, 2000, 2000])
        #expect(backoff.failed(random: 0) == .zero)
        for _ in 0..<100 { #expect(backoff.failed(random: 0.5) == .seconds(1)) }
        backoff.succeeded()
        #expect(backoff.failed(random: 0.5) == .milliseconds(50))
    }
}
