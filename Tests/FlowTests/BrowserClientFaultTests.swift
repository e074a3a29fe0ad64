import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// `fieldpost.js` in a real browser: two tabs on one store and another device, while tabs, network, storage and
    /// gateway fail at random.
    ///
    /// At the end of each seed:
    /// 1. each tab, and the store alone, equals a download;
    /// 2. the server has each mutation once, without gaps, and rejected none;
    /// 3. each note is what the mutations make of it in the server's order.
    struct BrowserClientFaultTests {
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
            var options = LocalCluster.Options.quick
            options.services = [.relay, .gateway, .shareFanOut, .onboarding]
            options.showcases = [.onboarding, .gateway]
            options.variables[.onboarding, default: [:]]["FIELDPOST_ONBOARDING_APP_FOLDER"] = folder.path
            try await withCluster("browser-faults", options) { cluster in
                try await cluster.runCommand([
                    "environment", "add", BrowserClientFaults.environment, "--domain", "example.com", "--issuer",
                    cluster.identityURL, "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks",
                    "--backend", "none",
                ])
                let browser = try await Browser(in: cluster.folder)
                for seed in Seeds.random(20, thorough: 500, for: "browser faults") {
                    var faults = try await BrowserClientFaults(cluster, browser, seed: seed)
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
                }
                await browser.end()
            }
        }
    }
}
