import Foundation
import HTTPClient
import HTTPTypes
import Hummingbird
import Identity
import LocalCluster
import Logging
import NIOPosix
import ServiceLifecycle
import Synchronization

@testable import HTTPServer
@testable import Sandbox
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// The sandbox's identity provider in the test's process. Commands run on their own threads meanwhile
/// (`withOwnThread`), so that the provider can respond.
struct TestProvider: Sendable {
    let port: Int
    let state: IdentityState
    let gate: Gate

    static let client = IdentityClient(id: "app", secret: "much-secret")

    /// The issuer of an environment.
    func issuer(_ name: String) -> String { "http://127.0.0.1:\(port)/\(name)" }

    /// Returns a refresh token issued by the provider.
    func refreshToken() -> String {
        state.keep(
            IdentityState.Login(
                issuer: issuer("acme"), client: Self.client.id, redirectURI: "", scope: [], state: nil, nonce: nil,
                challenge: nil, expires: .max), as: .refreshToken)
    }

    func has(_ refreshToken: String) -> Bool { state.find(refreshToken, as: .refreshToken) != nil }

    /// Delays requests for the configuration of one environment.
    final class Gate: RouterMiddleware {
        private struct State {
            var held: String?
            var isReached = false
            var waiting: CheckedContinuation<Void, Never>?
        }

        private let state = Mutex(State())

        /// The next request whose path contains `part` waits.
        func hold(_ part: String) { state.withLock { $0 = State(held: part) } }
        var isReached: Bool { state.withLock { $0.isReached } }

        func open() {
            state.withLock { state in
                defer { state = State() }
                return state.waiting
            }?.resume()
        }

        @concurrent func handle(
            _ request: Request, context: EdgeContext,
            next: @concurrent (Request, EdgeContext) async throws -> Response
        ) async throws -> Response {
            await withCheckedContinuation { continuation in
                let isHeld = state.withLock { state in
                    guard let held = state.held, request.uri.path.contains(held), state.waiting == nil else {
                        return false
                    }
                    state.isReached = true
                    state.waiting = continuation
                    return true
                }
                if !isHeld { continuation.resume() }
            }
            return try await next(request, context)
        }
    }
}

/// Runs `body` with a provider, and stops it afterwards.
func withProvider(_ body: @Sendable (TestProvider) async throws -> Void) async throws {
    let (port, gate) = (try Ports.free(), TestProvider.Gate())
    let state = IdentityState(password: "right", clients: [TestProvider.client])
    let provider = IdentityProvider(
        issuer: "http://127.0.0.1:\(port)", audience: "fieldpost", keys: try await IdentityKeys.load(from: nil),
        state: state)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let (started, announce) = AsyncStream.makeStream(of: Int.self)
    let component = Component.http(
        "identity", host: "127.0.0.1", port: port, started: { announce.yield($0) },
        routes: { router in
            router.add(middleware: gate)
            provider.addRoutes(to: router)
        })
    let runtime = ComponentEnvironment(
        logger: logger, health: Health(stallMax: .seconds(60)), eventLoops: MultiThreadedEventLoopGroup.singleton)
    let group = ServiceGroup(services: [component.make(runtime)], logger: logger)
    let running = Task { try await group.run() }
    for await _ in started { break }
    let outcome: Result<Void, any Error>
    do {
        outcome = .success(try await body(TestProvider(port: port, state: state, gate: gate)))
    } catch {
        outcome = .failure(error)
    }
    gate.open()
    await group.triggerGracefulShutdown()
    _ = try? await running.value
    try outcome.get()
}
