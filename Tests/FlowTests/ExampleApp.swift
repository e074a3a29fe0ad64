import Foundation
import LocalCluster
import TestSupport
import Testing

/// A web app of `examples/` in a real browser, served by onboarding at `/app/`.
struct ExampleApp {
    /// The folder in `examples/`.
    let name: String
    private let folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-example-\(UUID())")

    /// Sets the options of a cluster that serves the app.
    func configure(_ options: inout LocalCluster.Options) throws {
        options.services.append(.onboarding)
        options.showcases = [.onboarding, .gateway]
        options.variables[.onboarding, default: [:]]["FIELDPOST_ONBOARDING_APP_FOLDER"] = folder.path
        try write(onboarding: "http://127.0.0.1:1", gateway: "http://127.0.0.1:1")
    }

    /// Runs `body` on the app's page, after a person has signed in.
    func withPage(
        _ cluster: LocalCluster, of email: String, in environment: String,
        _ body: (Browser, Browser.Page) async throws -> Void
    ) async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        try await cluster.runCommand([
            "environment", "edit", environment, "--client-id", LocalCluster.clientID,
            "--client-secret-from", LocalCluster.clientSecretVariable,
        ])
        // Onboarding reads the folder when it starts.
        try write(onboarding: cluster.onboardingURL, gateway: cluster.gatewayURL)
        try await cluster.restart(.onboarding)
        try await cluster.waitUntilReady(.onboarding)
        let browser = try await Browser(in: cluster.folder)
        let page = try await browser.open(cluster.onboardingURL + "/app/")
        let outcome: Result<Void, any Error>
        do {
            try await browser.signIn(email, on: page, form: "#sign-in", link: "#login")
            try await browser.wait(Self.status("live, 0"), on: page)
            try await body(browser, page)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
            let text = try? await browser.value("document.body.innerText", on: page)
            print("the page displays: \(text ?? "")")
        }
        await browser.end()
        try outcome.get()
    }

    static func status(_ start: String) -> String {
        "document.getElementById('status').textContent.startsWith('\(start)')"
    }

    /// Writes the app as a reader of the tutorial has it, with the addresses of a cluster.
    private func write(onboarding: String, gateway: String) throws {
        let example = projectRoot.appending(path: "examples/\(name)")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.copyItem(at: example, to: folder)
        var script = try String(contentsOf: example.appending(path: "app.js"), encoding: .utf8)
        for (address, replacement) in [("http://127.0.0.1:18083", onboarding), ("http://127.0.0.1:18080", gateway)] {
            #expect(script.contains(address))
            script = script.replacingOccurrences(of: address, with: replacement)
        }
        let library = projectRoot.appending(path: "Services/Onboarding/App/fieldpost.js")
        try Data(contentsOf: library).write(to: folder.appending(path: "fieldpost.js"))
        try Data(script.utf8).write(to: folder.appending(path: "app.js"))
    }
}
