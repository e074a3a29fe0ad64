import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// A person walks the whole login in a real browser, with every executable behind it.
    struct OnboardingBrowserTests {
        /// The second has the form of Microsoft Entra ID: a tenant whose tokens have no address except the login name,
        /// and no `email_verified`.
        @Test(.timeLimit(.minutes(20)), arguments: [nil, "6d1f9c2e-8a51-4f3b-9d0e-2b7c5a4e1f60"])
        func personOnboardsOnTheDevicePage(tenant: String?) async throws {
            var options = LocalCluster.Options.quick
            options.services = [.relay, .gateway, .initializer, .onboarding]
            options.showcases = [.onboarding]
            try await withCluster(tenant == nil ? "browser" : "entra", options) { cluster in
                let organisation = SmallOrganisation(peopleCount: 2)
                try await organisation.load(into: cluster, invites: false)
                try await cluster.runCommand([
                    "environment", "edit", SmallOrganisation.environment, "--client-id", LocalCluster.clientID,
                    "--client-secret-from", LocalCluster.clientSecretVariable,
                ])
                if let tenant {
                    let url = "\(cluster.identityURL)/\(tenant)"
                    // Without the last option no person could onboard.
                    try await cluster.runCommand([
                        "environment", "edit", SmallOrganisation.environment, "--issuer", url + "/v2.0", "--jwks-url",
                        url + "/discovery/v2.0/keys", "--audience", LocalCluster.clientID, "--address-verified-by",
                        "issuer",
                    ])
                }
                let checked = try await cluster.runCommand(["environment", "check", SmallOrganisation.environment])
                #expect(checked.contains("client") && !checked.contains("FAILS"), "\(checked)")
                let browser = try await Browser(in: cluster.folder)
                let device = try await browser.open(cluster.onboardingURL + "/device")
                let outcome: Result<Void, any Error>
                do {
                    let email = organisation.people[0].email
                    try await walk(browser, device, email)
                    // What changes meanwhile comes by itself.
                    try await cluster.runCommand(["environment", "role", "manager", email])
                    let rows = "Array.from(document.querySelectorAll('[data-kind=Person]'))"
                    try await browser.wait("\(rows).some((row) => row.textContent.includes('manager'))", on: device)
                    let seen = try await cluster.runCommand(["environment", "check", SmallOrganisation.environment])
                    #expect(!seen.contains("FAILS"), "\(seen)")
                    #expect(seen.contains("email_verified \(tenant == nil ? "yes" : "no")"), "\(seen)")
                    outcome = .success(())
                } catch {
                    outcome = .failure(error)
                    await browser.keepPicture(of: device, "device-page")
                }
                await browser.end()
                try outcome.get()
            }
        }

        private func walk(_ browser: Browser, _ device: Browser.Page, _ email: String) async throws {
            var login: Browser.Page?
            do {
                try await walk(browser, device, &login, email)
            } catch {
                if let login { await browser.keepPicture(of: login, "login-page") }
                throw error
            }
        }

        private func walk(
            _ browser: Browser, _ device: Browser.Page, _ loginPage: inout Browser.Page?, _ email: String
        ) async throws {
            // The page loads its script, which makes the button work.
            try await browser.wait("document.getElementById('begin')?.disabled === false", on: device)
            _ = try await browser.value(
                "(document.getElementById('email').value = '\(email)', document.getElementById('begin').click())",
                on: device)
            try await browser.wait("!document.getElementById('login').hidden", on: device)
            let url = try await browser.value("document.getElementById('login').href", on: device)

            // First with a wrong password, then refusing, then as it should be.
            let login = try await browser.open(url)
            loginPage = login
            try await browser.logIn(as: email, on: login, password: "wrong")
            try await browser.wait("document.getElementById('problem')", on: login)
            try await browser.logIn(as: email, on: login, password: "sandbox")
            try await browser.choose("refuse", on: login)
            try await browser.wait("document.querySelector('[data-code=consent-refused]')", on: login)
            try await browser.wait("document.getElementById('problem').textContent.includes('denied')", on: device)
            _ = try await browser.value("document.getElementById('retry').click()", on: login)
            try await browser.logIn(as: email, on: login, password: "sandbox")
            try await browser.choose("allow", on: login)
            try await browser.wait("document.getElementById('done')", on: login)

            try await browser.wait(
                "document.getElementById('token').textContent.startsWith('received')", on: device)
            try await browser.wait(
                "document.getElementById('realm').textContent === '/users/\(email)'", on: device)
            try await browser.wait("document.getElementById('data').textContent === 'ready'", on: device)
            try await browser.wait("document.getElementById('live').textContent.startsWith('live')", on: device)
            try await browser.wait("document.querySelector('[data-kind=ReportingTreeNode]')", on: device)
            #expect(try await browser.value("document.getElementById('problem').textContent", on: device) == "")
        }
    }
}
