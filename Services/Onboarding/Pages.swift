import Essentials
import HTTPClient
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// The plain pages a person sees in the browser. Nothing that came from outside is on them but what they entered.
enum Pages {
    static func response(_ page: LoginFlow.Page) -> Response {
        switch page {
        case .done:
            html(.ok, "You are logged in", "<p id=\"done\">You can close this window and go back to your device.</p>")
        case .confirm(let confirm, let email, let device, let address):
            html(.ok, "Is this your device?", question(confirm, email, device, address))
        case .problem(let problem, let url):
            html(
                status(problem), "The login did not work",
                """
                <p id="problem" data-code="\(HTMLText(problem.code))">\(HTMLText(problem.message))</p>
                \(url.map { "<p><a id=\"retry\" href=\"\(HTMLText($0))\" rel=\"noreferrer\">Try again</a></p>" } ?? "")
                """)
        case .linkNotValid:
            html(
                .badRequest, "This login link is not valid any more",
                "<p id=\"problem\">It was used before, or it has expired. Begin again on your device.</p>")
        case .tooMany:
            html(.tooManyRequests, "Too many attempts", "<p id=\"problem\">Wait a minute, and begin again.</p>")
        }
    }

    static let unavailable = html(
        .serviceUnavailable, "Not available at the moment", "<p id=\"problem\">Load this page again in a minute.</p>")

    private static func question(_ confirm: Capability, _ email: String, _ device: String, _ address: String) -> String
    {
        """
        <p>A device asks to work with the hours of <strong>\(HTMLText(email))</strong>:</p>
        <p><strong>\(HTMLText(device.isEmpty ? "unnamed device" : device))</strong>,
        network address <strong>\(HTMLText(address))</strong></p>
        <p>Say yes only if you began this a moment ago on your own device. Nobody else may ask you to.</p>
        <form method="post" action="/auth_confirm">
        <input type="hidden" name="confirm" value="\(confirm.text)">
        <p><button type="submit" name="decision" value="yes">Yes, it is mine</button>
        <button type="submit" name="decision" value="no">No</button></p>
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

    /// No script, no style, no frame, no image: nothing to inject into.
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
