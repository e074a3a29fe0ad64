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
