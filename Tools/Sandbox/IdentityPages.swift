import Essentials
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// The provider's pages for people.
enum IdentityPages {
    static func login(_ transaction: String, action: String, hint: String, problem: String? = nil) -> Response {
        page(
            "Sign in", status: problem == nil ? .ok : .unauthorized,
            """
            \(problem.map { "<p role=\"alert\" id=\"problem\">\(HTMLText($0))</p>" } ?? "")
            <form method="post" action="\(HTMLText(action))">
            <input type="hidden" name="transaction" value="\(HTMLText(transaction))">
            <p><label>E-mail address<br>
            <input type="email" name="email" value="\(HTMLText(hint))" autocomplete="username" required></label></p>
            <p><label>Password<br>
            <input type="password" name="password" autocomplete="current-password" required></label></p>
            <p><button type="submit">Sign in</button></p>
            </form>
            """)
    }

    static func consent(_ transaction: String, action: String, client: String, email: String) -> Response {
        page(
            "Allow access?",
            """
            <p>You are signed in as <strong>\(HTMLText(email))</strong>.
            <strong>\(HTMLText(client))</strong> requests your e-mail address and permission to act for you.</p>
            <form method="post" action="\(HTMLText(action))">
            <input type="hidden" name="transaction" value="\(HTMLText(transaction))">
            <p><button type="submit" name="decision" value="allow">Allow</button>
            <button type="submit" name="decision" value="refuse">Refuse</button></p>
            </form>
            """)
    }

    static func problem(_ text: String) -> Response {
        page("This does not work", status: .badRequest, "<p id=\"problem\">\(HTMLText(text))</p>")
    }

    private static func page(_ title: String, status: HTTPResponse.Status = .ok, _ body: String) -> Response {
        let html = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>\(HTMLText(title))</title>
            <meta name="viewport" content="width=device-width, initial-scale=1"></head>
            <body><main><h1>\(HTMLText(title))</h1>
            \(body)
            <p><small>The sandbox's identity provider: for laptops and tests only.</small></p></main></body></html>
            """
        return Response(
            status: status,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
                .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
                .xContentTypeOptions: "nosniff",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: html)))
    }
}
