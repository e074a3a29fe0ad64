import Foundation
import TestSupport

extension Browser {
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
        try await wait(
            "document.querySelector('\(link)')?.href.startsWith('http') && "
                + "document.querySelector('\(link)').offsetParent", on: page)
        let login = try await open(try await value("document.querySelector('\(link)').href", on: page))
        try await wait("document.querySelector('input[name=password]')", on: login)
        _ = try await value(
            """
            (document.querySelector('input[name=email]').value = '\(email)',
                document.querySelector('input[name=password]').value = 'sandbox',
                document.querySelector('form button').click())
            """, on: login)
        try await wait("document.querySelector('button[value=allow]')", on: login)
        _ = try await value("document.querySelector('button[value=allow]').click()", on: login)
        try await wait("document.getElementById('done')", on: login)
    }
}
