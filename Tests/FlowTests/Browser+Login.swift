import Foundation
import TestSupport

/// The sandbox's identity provider in a browser.
extension Browser {
    /// Enters an address and a password; the right one leads to the page where the person decides.
    func logIn(as email: String, on page: Page, password: String) async throws {
        try await wait("document.querySelector('input[name=password]')", on: page)
        _ = try await value(
            """
            (document.querySelector('input[name=email]').value = '\(email)',
                document.querySelector('input[name=password]').value = '\(password)',
                document.querySelector('form button').click())
            """, on: page)
        if password == "wrong" { return }
        try await wait("document.querySelector('button[value=allow]')", on: page)
    }

    func choose(_ decision: String, on page: Page) async throws {
        _ = try await value("document.querySelector('button[value=\(decision)]').click()", on: page)
    }

    /// Signs a person in: submits the page's form, and logs in at the sandbox's identity provider in another page.
    ///
    /// - Parameters:
    ///   - form: The selector of the form, which has an input `email`.
    ///   - link: The selector of the link to the provider, which is hidden until there is an address.
    func signIn(_ email: String, on page: Page, form: String, link: String) async throws {
        try await wait("document.querySelector('\(form) input[name=email]')?.offsetParent", on: page)
        _ = try await value(
            """
            (() => {
                const form = document.querySelector('\(form)');
                const input = form.querySelector('input[name=email]');
                input.value = '\(email)';
                input.dispatchEvent(new Event('input', { bubbles: true }));
                form.requestSubmit();
            })()
            """, on: page)
        let element = "document.querySelector('\(link)')"
        try await wait("\(element)?.offsetParent && \(element).href.startsWith('http')", on: page)
        let login = try await open(try await value("\(element).href", on: page))
        try await logIn(as: email, on: login, password: "sandbox")
        try await choose("allow", on: login)
        try await wait("document.getElementById('done')", on: login)
        // It was in front of the page.
        try await close(login)
    }

    /// Stores a picture of the displayed page, for the failure's message.
    func keepPicture(of page: Page, _ name: String) async {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let path = folder.appendingPathComponent(".build/\(name).png")
        guard let picture = try? await screenshot(of: page) else { return }
        try? picture.write(to: path)
        print("picture of the \(name) as it was: \(path.path)")
    }
}
