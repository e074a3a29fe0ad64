internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// What an answer's status and body mean.
enum SAPAnswer {
    /// Refused for its CSRF token, and therefore not processed.
    static func wantsToken(_ response: Response) -> Bool {
        response.status == 403 && response.headers["x-csrf-token"]?.lowercased() == "required"
    }

    /// - Throws: What any answer but 2xx stands for.
    static func check(_ response: Response, isWrite: Bool) throws(BackendError) {
        try HTTPAnswer.check(
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

    /// Whether an error is the called service's own, and not that of something before it: a proxy, a wrong address, or
    /// Gateway that has no such service (message class /IWFND/MED).
    static func isFromService(_ response: Response) -> Bool {
        guard let body = HTTPAnswer.decoded(ErrorBody.self, from: response.body) else { return false }
        return body.error.code?.hasPrefix("/IWFND/MED") != true
    }

    /// One message per error detail, or the error's own when it has no details; never empty.
    static func messages(of response: Response) -> [String] {
        guard let body = HTTPAnswer.decoded(ErrorBody.self, from: response.body) else {
            return ["HTTP \(response.status)"]
        }
        var messages: [String] = []
        var known: Set<String> = []
        for detail in body.error.innererror?.errordetails ?? [] {
            guard let message = detail.message, !message.isEmpty else { continue }
            switch detail.severity?.lowercased() {
            case "info", "success", "warning": continue
            // Gateway repeats the main message among the details.
            default: if known.insert(message).inserted { messages.append(message) }
            }
        }
        return messages.isEmpty ? [body.error.message?.value ?? "HTTP \(response.status)"] : messages
    }
}
