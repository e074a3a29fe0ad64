import Foundation
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// The app of docs/apps/app-in-an-hour.md in a real browser, with every executable behind it.
    struct ExampleAppFlowTests {
        @Test(.timeLimit(.minutes(20)))
        func exampleAppWorksOnlineAndOffline() async throws {
            let app = ExampleApp(name: "app")
            var options = LocalCluster.Options.quick
            options.services = [.relay, .gateway, .initializer]
            try app.configure(&options)
            try await withCluster("example", options) { cluster in
                let organisation = SmallOrganisation(peopleCount: 1)
                try await organisation.load(into: cluster, invites: false)
                let email = organisation.people[0].email
                try await app.withPage(cluster, of: email, in: SmallOrganisation.environment) { browser, page in
                    try await add("measure the hall", browser, page)
                    try await browser.wait(isListed("measure the hall", saved: true), on: page)

                    await cluster.kill9(.gateway)
                    try await browser.wait(ExampleApp.status("offline, 0"), on: page)
                    try await add("written offline", browser, page)
                    try await browser.wait(isListed("written offline", saved: false), on: page)
                    try await browser.wait(ExampleApp.status("offline, 1"), on: page)
                    // The change is on the device, also after the page was closed.
                    try await browser.go(to: cluster.onboardingURL + "/app/", on: page)
                    try await browser.wait(isListed("written offline", saved: false), on: page)
                    try await cluster.restart(.gateway)
                    try await browser.wait(isListed("written offline", saved: true), on: page)
                    try await browser.wait(ExampleApp.status("live, 0"), on: page)
                }
            }
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
