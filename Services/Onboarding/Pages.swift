import Essentials
import HTTPTypes
import Hummingbird
import NIOCore

/// The HTML pages of a login. The only external input they contain is the person's own, escaped.
enum Pages {
    static func response(_ page: LoginFlow.Page) -> Response {
        switch page {
        case .done:
            html(.ok, "You are logged in", "<p id=\"done\">You can close this window and return to your device.</p>")
        case .confirm(let confirm, let email, let device, let address):
            html(.ok, "Confirm your device", question(confirm, email, device, address))
        case .problem(let problem, let url):
            html(
                status(problem), "Login failed",
                """
                <p id="problem" data-code="\(HTMLText(problem.code))">\(HTMLText(problem.message))</p>
                \(url.map { "<p><a id=\"retry\" href=\"\(HTMLText($0))\" rel=\"noreferrer\">Try again</a></p>" } ?? "")
                """)
        case .linkInvalid:
            html(
                .badRequest, "Invalid login link",
                "<p id=\"problem\">The link was used before or has expired. Start again on your device.</p>")
        case .tooMany:
            html(.tooManyRequests, "Too many attempts", "<p id=\"problem\">Wait one minute, then start again.</p>")
        }
    }

    static let unavailable = html(
        .serviceUnavailable, "Service unavailable", "<p id=\"problem\">Reload this page in one minute.</p>")

    private static func question(_ confirm: Capability, _ email: String, _ device: String, _ address: String) -> String
    {
        """
        <p>A device requests access to the time entries of <strong>\(HTMLText(email))</strong>:</p>
        <p><strong>\(HTMLText(device.isEmpty ? "unnamed device" : device))</strong>,
        network address <strong>\(HTMLText(address))</strong></p>
        <p>Confirm only if you started this login on your own device just now.
        Decline if another person sent you here.</p>
        <form method="post" action="/auth_confirm">
        <input type="hidden" name="confirm" value="\(confirm.text)">
        <p><button type="submit" name="decision" value="yes">Yes, this is my device</button>
        <button type="submit" name="decision" value="no">No, decline</button></p>
        </form>
        """
    }

    private static func status(_ problem: LoginProblem) -> HTTPResponse.Status {
        switch problem {
        case .providerUnavailable, .interrupted: .serviceUnavailable
        case .providerError, .tokenRefused: .badGateway
        case .consentRefused, .otherAddress, .emailUnverified, .boundElsewhere, .notConfirmed, .personUnknown:
            .forbidden
        }
    }

    /// Renders a page without scripts, styles, frames and images, to leave no target for injection.
    private static func html(_ status: HTTPResponse.Status, _ title: String, _ body: String) -> Response {
        let text = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><title>\(HTMLText(title))</title>
            <meta name="viewport" content="width=device-width, initial-scale=1"></head>
            <body><main><h1>\(HTMLText(title))</h1>
            \(body)</main></body></html>

            """
        return Response(
            status: status,
            headers: [
                .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
                .contentSecurityPolicy:
                    "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
            ], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
