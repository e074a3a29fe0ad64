import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Synchronization
import TestSupport
import Testing

extension FlowTests {
    /// `fieldpost.js` in a real browser: two tabs on one store and another device, while tabs, network, storage and
    /// gateway fail at random.
    ///
    /// At the end of each seed:
    /// 1. each tab, and the store alone, equals a download, and no mutation is queued;
    /// 2. the server has each stored mutation once, without gaps. A mutation may be missing only if the storage was
    ///    cleared before it was sent and no tab was left;
    /// 3. the page showed each rejected mutation, and the server has none that the page refused;
    /// 4. each note is what the mutations make of it in the server's order.
    ///
    /// Several seeds run at the same time, each with an origin of its own.
    struct BrowserClientFaultTests {
        private static let concurrencyMax = 5
        private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()

        /// The folder that onboarding serves: the page that the test controls, and the library.
        private func writePage(to folder: URL) throws {
            let page = Self.sources.appending(path: "Tests/BrowserClientTests/harness")
            let library = Self.sources.appending(path: "Services/Onboarding/App/fieldpost.js")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for file in [page.appending(path: "index.html"), page.appending(path: "harness.js"), library] {
                try Data(contentsOf: file).write(to: folder.appending(path: file.lastPathComponent))
            }
        }

        @Test(.timeLimit(.minutes(120)))
        func tabsConvergeAndMutationsApplyOnceDespiteFaults() async throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-faults-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            try writePage(to: folder)
            // Each origin has its own storage.
            let origins = (0..<Self.concurrencyMax).map { "http://storage\($0).localhost" }
            var options = LocalCluster.Options.quick
            options.services = [.relay, .gateway, .shareFanOut, .onboarding]
            options.showcases = [.onboarding, .gateway]
            options.variables[.onboarding, default: [:]]["FIELDPOST_ONBOARDING_APP_FOLDER"] = folder.path
            options.variables[.gateway, default: [:]]["FIELDPOST_CORS_ORIGINS"] = origins.joined(separator: ",")
            try await withCluster("browser-faults", options) { cluster in
                try await cluster.runCommand([
                    "environment", "add", BrowserClientFaults.environment, "--domain", "example.com", "--issuer",
                    cluster.identityURL, "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks",
                    "--backend", "none",
                ])
                let host = String(cluster.onboardingURL.dropFirst("http://".count))
                let browser = try await Browser(
                    in: cluster.folder, origins: Dictionary(uniqueKeysWithValues: origins.map { ($0, host) }))
                let gateway = GatewayFaults(cluster)
                let seeds = SeedQueue(Seeds.random(20, thorough: 500, for: "browser faults"))
                await withTaskGroup { group in
                    for origin in origins {
                        group.addTask {
                            while let seed = seeds.next() {
                                await run(seed, gateway, browser, origin: origin)
                            }
                        }
                    }
                }
                await gateway.waitUntilUp()
                await browser.end()
            }
        }

        private func run(_ seed: UInt64, _ gateway: GatewayFaults, _ browser: Browser, origin: String) async {
            let start = ContinuousClock.now
            var faults: BrowserClientFaults
            do {
                faults = try await BrowserClientFaults(gateway, browser, origin: origin, seed: seed)
            } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
            do {
                try await faults.run(stepCount: 40)
            } catch {
                let statuses = await faults.statuses()
                Issue.record(
                    """
                    seed \(seed): \(error)
                    \(faults.steps.joined(separator: "\n"))
                    \(statuses.joined(separator: "\n"))
                    """)
            }
            await faults.end()
            print(
                "browser faults: \(seed) took \(ContinuousClock.now - start), a write at most \(faults.writeTimeMax)",
                "and idling \(faults.idleTimeMax)")
        }
    }
}

/// Seeds that several tasks take.
private final class SeedQueue: Sendable {
    private let seeds: Mutex<[UInt64]>

    init(_ seeds: [UInt64]) { self.seeds = Mutex(seeds.reversed()) }

    func next() -> UInt64? { seeds.withLock { $0.popLast() } }
}
