import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// axe-core in every view of the field app: at the widths of a phone and of a desk, light and dark.
    struct AppAccessibilityTests {
        /// A state of the app: an address, and the steps that open a dialog there.
        private struct Screen {
            let path: String
            /// Keys of the texts of buttons and links, which are clicked in this order.
            var clicks: [String] = []
        }

        private static let entry = "5d0a7c1e-92b4-4f36-8a0d-3c1f7e5b9a21"
        private static let appointment = "5d0a7c1e-92b4-4f36-8a0d-3c1f7e5b9a22"
        private static let note = "5d0a7c1e-92b4-4f36-8a0d-3c1f7e5b9a23"
        private static let screens = [
            Screen(path: "time"), Screen(path: "time/2026-03-30"), Screen(path: "time/week/2026-03-30"),
            Screen(path: "time/2026-03-30/\(entry)"), Screen(path: "time/2026-03-30/\(entry)/edit"),
            Screen(path: "time/2026-03-30/new"), Screen(path: "tasks"),
            Screen(path: "tasks", clicks: ["tasks.filters"]), Screen(path: "team"), Screen(path: "team/map"),
            Screen(path: "shared"), Screen(path: "shared/notes"),
            Screen(path: "shared/people"), Screen(path: "shared/deleted"), Screen(path: "shared/\(appointment)"),
            Screen(path: "shared/\(appointment)", clicks: ["app.edit"]),
            Screen(path: "shared/\(appointment)", clicks: ["shared.share"]), Screen(path: "shared/\(note)"),
            Screen(path: "defects"), Screen(path: "defects/queries"), Screen(path: "defects/account"),
            Screen(path: "defects/new"), Screen(path: "notices"),
            Screen(path: "notices", clicks: ["notices.deliveries"]), Screen(path: "sync"),
            Screen(path: "sync", clicks: ["sync.signOut"]),
        ]

        @Test(.timeLimit(.minutes(60))) func viewsHaveNoSeriousViolations() async throws {
            let axe = try Self.axe()
            var options = LocalCluster.Options.quick
            options.services = LocalCluster.Part.entryServices + [.shareFanOut, .onboarding]
            options.showcases = [.onboarding, .gateway]
            try await withCluster("accessibility", options) { cluster in
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
                    try await browser.wait("document.querySelector('input[name=email]')?.offsetParent", on: page)
                    _ = try await browser.value("(() => { \(axe)\n; return ''; })()", on: page)
                    try await check("sign-in", browser, page)
                    try await browser.signIn(
                        organisation.people[0].email, on: page, form: "form", link: "a#login-link")
                    try await browser.wait("fieldpostApp.fieldpost.status.connection === 'live'", on: page)
                    try await addObjects(of: organisation.people[0].email, browser, page)
                    for screen in Self.screens { try await check(screen, browser, page) }
                    outcome = .success(())
                } catch {
                    outcome = .failure(error)
                    await browser.keepPicture(of: page, "accessibility")
                }
                await browser.end()
                try outcome.get()
            }
        }

        /// Returns the script of axe-core, which `deploy/test` installs.
        private static func axe() throws -> String {
            let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: ".build/axe/lib")
            let versions = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            let file = versions.map { folder.appending(path: "\($0)/site-packages/axe_playwright_python/axe.min.js") }
                .first { FileManager.default.fileExists(atPath: $0.path) }
            return try String(
                contentsOf: #require(file, "there is no axe-core in \(folder.path); deploy/test installs it"),
                encoding: .utf8)
        }

        /// Creates a draft, an appointment and a note, so that lists and details have content.
        private func addObjects(of email: String, _ browser: Browser, _ page: Browser.Page) async throws {
            try await browser.wait(
                "fieldpostApp.fieldpost.objects('ReportingTemplate').length > 0 && fieldpostApp.me.person", on: page)
            let put = "fieldpostApp.fieldpost.put('/users/\(email)',"
            _ = try await browser.result(
                of: """
                    Promise.all([
                        \(put) 'TimeEntry', '\(Self.entry)', { text: 'survey', entryDate: '2026-03-30', status: 'draft',
                            timeType: 'duration', durationSeconds: 5400, submitRequested: false,
                            reportingTemplate: fieldpostApp.fieldpost.objects('ReportingTemplate')[0].id }),
                        \(put) 'Appointment', '\(Self.appointment)', { why: 'hand-over', when: new Date().toISOString(),
                            durationMinutes: 30 }),
                        \(put) 'Note', '\(Self.note)', { title: 'material', body: 'two filters', isTask: true,
                            isDone: false }),
                    ])
                    """, on: page)
            try await browser.wait("fieldpostApp.fieldpost.status.queued === 0", on: page)
        }

        private func check(_ screen: Screen, _ browser: Browser, _ page: Browser.Page) async throws {
            // The address of another view between them closes what is open.
            _ = try await browser.value(
                """
                (document.querySelectorAll('dialog[open]').forEach((dialog) => dialog.close()),
                    location.hash = '#/\(screen.path.hasPrefix("sync") ? "notices" : "sync")')
                """, on: page)
            try await browser.wait("document.querySelector('h1')", on: page)
            _ = try await browser.value("(location.hash = '#/\(screen.path)')", on: page)
            let view = screen.path.prefix { $0 != "/" }
            try await browser.wait("document.querySelector('.view-\(view) :is(h1, h2)')", on: page)
            for key in screen.clicks {
                try await browser.wait(
                    """
                    (() => {
                        const text = fieldpostApp.t('\(key)');
                        const control = [...document.querySelectorAll('#main :is(a, button)')].find((one) =>
                            one.offsetParent && [one.ariaLabel, one.innerText.trim()].includes(text));
                        control?.click();
                        return control;
                    })()
                    """, on: page)
            }
            try await check(([screen.path] + screen.clicks).joined(separator: " "), browser, page)
        }

        /// Expects no violation of the rules that axe-core rates as serious or critical.
        private func check(_ name: String, _ browser: Browser, _ page: Browser.Page) async throws {
            for (width, isDark) in [(360, false), (360, true), (1_200, false), (1_200, true)] {
                try await browser.show(width: width, height: 780, isDark: isDark, on: page)
                // Views render in the next frame. Its callback runs before it is drawn, hence two.
                let found = try await browser.result(
                    of: """
                        new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
                        .then(() => axe.run(document, {
                            runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
                            resultTypes: ['violations'],
                        })).then(({ violations }) => violations
                            .filter(({ impact }) => ['serious', 'critical'].includes(impact))
                            .flatMap(({ id, help, nodes }) => nodes.map((node) =>
                                `${id} (${help}): ${node.target.join(' ')}`)).join('\\n'))
                        """, on: page)
                #expect(found == "", "\(name), \(width) pixels, \(isDark ? "dark" : "light")")
            }
        }
    }
}
