internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// Classification of Compass's responses.
enum CompassResponse {
    /// The body of an error. Source: the sample app's `ErrorResponse`.
    private struct ErrorBody: Decodable {
        let status: Int
        let message: String?
    }

    /// Verifies that a response has a 2xx status.
    ///
    /// - Parameter mayBeForbidden: Whether a 403 concerns the requested object, and not the account.
    /// - Throws: The error that corresponds to any other status.
    static func check(
        _ response: Response, isWrite: Bool, mayBeForbidden: Bool = false, _ account: CompassAccount
    ) throws(BackendError) {
        if (200..<300).contains(response.status) { return }
        let isFromService = isFromService(response)
        let messages = [account.redacted(message(of: response))]
        switch response.status {
        case 403 where mayBeForbidden && isFromService: throw .refused(BackendMessage.truncated(messages))
        case 300..<400, 403, 407:
            if isFromService { break }
            // Such a response does not concern the account, and nothing was processed. A 401 of Compass may have no
            // body.
            let reason = "HTTP \(response.status) of a proxy or login page, not of HCL Compass"
            throw .notProcessed(reason: reason, retryAfter: nil)
        default: break
        }
        try BackendResponse.check(response, isWrite: isWrite, isFromService: isFromService, messages: messages)
    }

    /// Returns whether Compass itself reports that an object does not exist.
    static func isAbsent(_ response: Response) -> Bool { response.status == 404 && isFromService(response) }

    /// Returns whether an error was returned by Compass itself, and not by a proxy or because of a wrong address.
    static func isFromService(_ response: Response) -> Bool { body(of: response)?.status == response.status }

    static func message(of response: Response) -> String {
        let message = body(of: response)?.message ?? ""
        return message.isEmpty ? "HTTP \(response.status)" : message
    }

    private static func body(of response: Response) -> ErrorBody? {
        guard !(200..<300).contains(response.status) else { return nil }
        return BackendResponse.decoded(ErrorBody.self, from: response.body)
    }
}
