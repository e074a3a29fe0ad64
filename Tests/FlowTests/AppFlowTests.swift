import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// A person uses the field app in a real browser, with every executable behind it.
    struct AppFlowTests {
        private static let entry = "5d0a7c1e-92b4-4f36-8a0d-3c1f7e5b9a20"

        @Test(.timeLimit(.minutes(20))) func entryOfTheAppIsReleasedAndReadableOffline() async throws {
            var options = LocalCluster.Options.quick
            options.services = LocalCluster.Part.entryServices + [.onboarding]
            options.showcases = [.onboarding, .gateway]
            try await withCluster("app", options) { cluster in
                let organisation = SmallOrganisation(peopleCount: 2)
                try await organisation.load(into: cluster, invites: false)
                try await cluster.runCommand([
                    "environment", "edit", SmallOrganisation.environment, "--client-id", LocalCluster.clientID,
                    "--client-secret-from", LocalCluster.clientSecretVariable,
                ])
                let browser = try await Browser(in: cluster.folder)
                let page = try await browser.open(cluster.onboardingURL + "/app/")
                let outcome: Result<Void, any Error>
                do {
                    let email = organisation.people[0].email
                    try await signIn(browser, page, email)
                    try await releaseEntry(browser, page, email)
                    try await reopenOffline(browser, page, email, cluster)
                    outcome = .success(())
                } catch {
                    outcome = .failure(error)
                    let status = try? await browser.value("JSON.stringify(fieldpostApp.fieldpost.status)", on: page)
                    print("status of the app: \(status ?? "none")")
                    await browser.keepPicture(of: page, "app")
                }
                await browser.end()
                try outcome.get()
            }
        }

        private func signIn(_ browser: Browser, _ page: Browser.Page, _ email: String) async throws {
            try await browser.signIn(email, on: page, form: "form", link: "a#login-link")
            try await browser.wait("fieldpostApp.fieldpost.status.connection === 'live'", on: page)
        }

        /// Creates an entry through the app's client, and waits until SAP has recorded and released it.
        private func releaseEntry(_ browser: Browser, _ page: Browser.Page, _ email: String) async throws {
            try await browser.wait(
                """
                fieldpostApp.fieldpost.objects('ReportingTreeNode').some((node) => node.fields.referenceId === 'P1.1')
                    && fieldpostApp.fieldpost.objects('ReportingTemplate').length > 0
                """, on: page)
            let fields = """
                {
                    text: 'survey', entryDate: new Date(Date.now() - 86400000).toISOString().slice(0, 10),
                    timeType: 'duration', durationSeconds: 3600, submitRequested: true,
                    reportingTemplate: fieldpostApp.fieldpost.objects('ReportingTemplate')[0].id,
                    reporting: [['Customer', '1'], ['Project', 'P1'], ['Accounting code', 'P1.1']].map(
                        ([name, referenceId]) => ({
                            context: fieldpostApp.fieldpost.objects('ReportingContext', { fields: { name } })[0].id,
                            node: fieldpostApp.fieldpost.objects(
                                'ReportingTreeNode', { realmPrefix: '/catalogues/', fields: { referenceId } })[0].id,
                        })),
                }
                """
            _ = try await browser.value(
                """
                (fieldpostApp.fieldpost.put('/users/\(email)', 'TimeEntry', '\(Self.entry)', \(fields))
                    .catch((error) => { globalThis.testProblem = String(error); }), '')
                """, on: page)
            let entry = Self.entry(of: email)
            try await browser.wait("globalThis.testProblem || \(entry).fields.text === 'survey'", on: page)
            try await browser.wait("globalThis.testProblem || \(entry).fields.status === 'released'", on: page)
            #expect(try await browser.value("globalThis.testProblem ?? ''", on: page) == "")
            try await browser.wait("fieldpostApp.fieldpost.status.queued === 0", on: page)
        }

        private static func entry(of email: String) -> String {
            "fieldpostApp.fieldpost.object('/users/\(email)', '\(entry)')"
        }

        /// Stops the servers, and opens the app again: the service worker has its files, and the store has the entry.
        /// It is live again as soon as the servers run.
        private func reopenOffline(
            _ browser: Browser, _ page: Browser.Page, _ email: String, _ cluster: LocalCluster
        ) async throws {
            _ = try await browser.value(
                "(navigator.serviceWorker.ready.then(() => { globalThis.testReady = true; }), '')", on: page)
            try await browser.wait("globalThis.testReady", on: page)
            let servers = [LocalCluster.Part.onboarding, .gateway]
            for part in servers { await cluster.kill9(part) }
            try await browser.go(to: cluster.onboardingURL + "/app/", on: page)
            try await browser.wait(
                "!globalThis.testReady && \(Self.entry(of: email)).fields.status === 'released'", on: page)
            try await browser.wait("fieldpostApp.fieldpost.status.connection !== 'live'", on: page)
            #expect(try await browser.value("document.querySelector('input[name=email]') === null", on: page) == "true")
            try await cluster.startAll(servers)
            try await browser.wait("fieldpostApp.fieldpost.status.connection === 'live'", on: page)
        }
    }
}
