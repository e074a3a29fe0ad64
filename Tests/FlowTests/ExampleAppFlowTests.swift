import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// The app of docs/apps/app-in-an-hour.md in a real browser, with every executable behind it.
    struct ExampleAppFlowTests {
        private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()

        /// The app as a reader of the tutorial has it, with the addresses of this cluster.
        private func writeApp(to folder: URL, onboarding: String, gateway: String) throws {
            let example = Self.sources.appending(path: "examples/app")
            let library = Self.sources.appending(path: "Services/Onboarding/App/fieldpost.js")
            var script = try String(contentsOf: example.appending(path: "app.js"), encoding: .utf8)
            for (address, replacement) in [
                ("http://127.0.0.1:18083", onboarding), ("http://127.0.0.1:18080", gateway),
            ] {
                #expect(script.contains(address))
                script = script.replacingOccurrences(of: address, with: replacement)
            }
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(contentsOf: example.appending(path: "index.html")).write(to: folder.appending(path: "index.html"))
            try Data(contentsOf: library).write(to: folder.appending(path: "fieldpost.js"))
            try Data(script.utf8).write(to: folder.appending(path: "app.js"))
        }

        @Test(.timeLimit(.minutes(20)))
        func exampleAppWorksOnlineAndOffline() async throws {
            let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-example-\(UUID())")
            defer { try? FileManager.default.removeItem(at: folder) }
            try writeApp(to: folder, onboarding: "http://127.0.0.1:1", gateway: "http://127.0.0.1:1")
            var options = LocalCluster.Options.quick
            options.services = [.relay, .gateway, .initializer, .onboarding]
            options.showcases = [.onboarding, .gateway]
            options.variables[.onboarding, default: [:]]["FIELDPOST_ONBOARDING_APP_FOLDER"] = folder.path
            try await withCluster("example", options) { cluster in
                let organisation = SmallOrganisation(peopleCount: 1)
                try await organisation.load(into: cluster, invites: false)
                try await cluster.runCommand([
                    "environment", "edit", SmallOrganisation.environment, "--client-id", LocalCluster.clientID,
                    "--client-secret-from", LocalCluster.clientSecretVariable,
                ])
                // Onboarding reads the folder when it starts.
                try writeApp(to: folder, onboarding: cluster.onboardingURL, gateway: cluster.gatewayURL)
                await cluster.kill9(.onboarding)
                try await cluster.restart(.onboarding)
                let browser = try await Browser(in: cluster.folder)
                let page = try await browser.open(cluster.onboardingURL + "/app/")
                let outcome: Result<Void, any Error>
                do {
                    try await browser.signIn(organisation.people[0].email, on: page, form: "#sign-in", link: "#login")
                    try await browser.wait(status("live, 0"), on: page)
                    try await add("measure the hall", browser, page)
                    try await browser.wait(isListed("measure the hall", saved: true), on: page)

                    await cluster.kill9(.gateway)
                    try await browser.wait(status("offline, 0"), on: page)
                    try await add("written offline", browser, page)
                    try await browser.wait(isListed("written offline", saved: false), on: page)
                    try await browser.wait(status("offline, 1"), on: page)
                    // The change is on the device, also after the page was closed.
                    try await browser.go(to: cluster.onboardingURL + "/app/", on: page)
                    try await browser.wait(isListed("written offline", saved: false), on: page)
                    try await cluster.restart(.gateway)
                    try await browser.wait(isListed("written offline", saved: true), on: page)
                    try await browser.wait(status("live, 0"), on: page)
                    outcome = .success(())
                } catch {
                    outcome = .failure(error)
                    print("the page displays: \(try await browser.value("document.body.innerText", on: page))")
                }
                await browser.end()
                try outcome.get()
            }
        }

        private func status(_ start: String) -> String {
            "document.getElementById('status').textContent.startsWith('\(start)')"
        }

        private func isListed(_ text: String, saved: Bool) -> String {
            """
            Array.from(document.querySelectorAll('#list li')).some((item) => item.textContent.includes('\(text)')
                && item.textContent.includes('(saving)') === \(!saved))
            """
        }

        private func add(_ text: String, _ browser: Browser, _ page: Browser.Page) async throws {
            _ = try await browser.value(
                """
                (document.querySelector('#add input').value = '\(text)',
                    document.querySelector('#add button').click())
                """, on: page)
        }
    }
}
