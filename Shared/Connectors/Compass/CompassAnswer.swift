internal import BackendHTTP
internal import BackendProtocol
internal import HTTPClient

/// What an answer's status and body mean.
enum CompassAnswer {
    /// The body of an error. Source: the sample app's `ErrorResponse`.
    private struct ErrorBody: Decodable {
        let status: Int
        let message: String?
    }

    /// - Parameter mayBeForbidden: A 403 is about the thing that was asked for, and not about the account: it is what
    ///   Compass says to its user.
    /// - Throws: What any answer but 2xx stands for.
    static func check(
        _ response: Response, isWrite: Bool, mayBeForbidden: Bool = false, _ account: CompassAccount
    ) throws(BackendError) {
        if (200..<300).contains(response.status) { return }
        let isFromService = isFromService(response)
        let messages = [account.redacted(message(of: response))]
        switch response.status {
        case 403 where mayBeForbidden && isFromService: throw .refused(BackendMessage.bounded(messages))
        case 300..<400, 403, 407:
            if isFromService { break }
            // It says nothing of the account, and has let nothing through. A 401 may be Compass's without a word.
            let reason = "HTTP \(response.status) of something before HCL Compass: a proxy, or a login page"
            throw .notProcessed(reason: reason, retryAfter: nil)
        default: break
        }
        try HTTPAnswer.check(response, isWrite: isWrite, isFromService: isFromService, messages: messages)
    }

    /// Whether Compass itself says that there is no such thing.
    static func isAbsent(_ response: Response) -> Bool { response.status == 404 && isFromService(response) }

    /// Whether an error is Compass's own, and not that of something before it: a proxy, or a wrong address.
    static func isFromService(_ response: Response) -> Bool { body(of: response)?.status == response.status }

    static func message(of response: Response) -> String {
        let message = body(of: response)?.message ?? ""
        return message.isEmpty ? "HTTP \(response.status)" : message
    }

    private static func body(of response: Response) -> ErrorBody? {
        guard !(200..<300).contains(response.status) else { return nil }
        return HTTPAnswer.decoded(ErrorBody.self, from: response.body)
    }
}
