internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// Classification of SAP Gateway's responses.
enum SAPResponse {
    /// Returns whether a request was rejected for its CSRF token, and therefore not processed.
    static func requiresToken(_ response: Response) -> Bool {
        response.status == 403 && response.headers["x-csrf-token"]?.lowercased() == "required"
    }

    /// Verifies that a response has a 2xx status.
    ///
    /// - Throws: The error that corresponds to any other status.
    static func check(_ response: Response, isWrite: Bool) throws(BackendError) {
        try BackendResponse.check(
            response, isWrite: isWrite, isFromService: isFromService(response), messages: messages(of: response))
    }

    // MARK: Messages

    /// The body of an error of SAP Gateway.
    private struct ErrorBody: Decodable {
        struct Failure: Decodable {
            struct Text: Decodable { let value: String? }
            struct Inner: Decodable { let errordetails: [Detail]? }
            struct Detail: Decodable {
                let message: String?
                let severity: String?
            }

            let code: String?
            let message: Text?
            let innererror: Inner?
        }

        let error: Failure
    }

    /// Returns whether an error was returned by the called service itself, and not by a proxy, because of a wrong
    /// address, or by a Gateway without such a service (message class /IWFND/MED).
    static func isFromService(_ response: Response) -> Bool {
        guard let body = BackendResponse.decoded(ErrorBody.self, from: response.body) else { return false }
        return body.error.code?.hasPrefix("/IWFND/MED") != true
    }

    /// Returns one message per error detail, or the error's own message if it has no details; never empty.
    static func messages(of response: Response) -> [String] {
        guard let body = BackendResponse.decoded(ErrorBody.self, from: response.body) else {
            return ["HTTP \(response.status)"]
        }
        var messages: [String] = []
        var seen: Set<String> = []
        for detail in body.error.innererror?.errordetails ?? [] {
            guard let message = detail.message, !message.isEmpty else { continue }
            switch detail.severity?.lowercased() {
            case "info", "success", "warning": continue
            // Gateway repeats the main message among the details.
            default: if seen.insert(message).inserted { messages.append(message) }
            }
        }
        return messages.isEmpty ? [body.error.message?.value ?? "HTTP \(response.status)"] : messages
    }
}
