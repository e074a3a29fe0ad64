internal import FoundationEssentials
internal import HTTP
internal import Model

/// What an answer's status and body mean.
enum SAPAnswer {
    /// Refused for its CSRF token, and therefore not processed.
    static func wantsToken(_ response: Response) -> Bool {
        response.status == 403 && response.headers["x-csrf-token"]?.lowercased() == "required"
    }

    /// - Throws: What any answer but 2xx stands for.
    static func check(_ response: Response, isWrite: Bool) throws(BackendError) {
        switch response.status {
        case 200..<300:
            return
        case 300..<400:
            throw .unauthorized(reason: "HTTP \(response.status): redirected, probably to a login page")
        case 401, 403, 407:
            throw .unauthorized(reason: "HTTP \(response.status): " + messages(of: response).joined(separator: "; "))
        case 408, 429:
            throw .notProcessed(reason: "HTTP \(response.status)", retryAfter: retryAfter(of: response))
        case 400..<500:
            // Only what the service itself says about a write is the entry's fault.
            guard isWrite, isFromService(response) else {
                let reason = "HTTP \(response.status): " + messages(of: response).joined(separator: "; ")
                throw .notProcessed(reason: reason, retryAfter: nil)
            }
            throw .refused(messages(of: response))
        default:
            let reason = "HTTP \(response.status): " + messages(of: response).joined(separator: "; ")
            throw isWrite
                ? .outcomeUnknown(reason: reason) : .notProcessed(reason: reason, retryAfter: retryAfter(of: response))
        }
    }

    /// Decodes an answer to a read.
    static func decode<Value: Decodable>(_: Value.Type, from body: [UInt8]) throws(BackendError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw .notProcessed(reason: "an answer that cannot be read: \(error)", retryAfter: nil)
        }
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

    static let messagesMax = 20
    static let messageLengthMax = 500

    /// Whether an error is the called service's own, and not that of something before it: a proxy, a wrong address, or
    /// Gateway that has no such service (message class /IWFND/MED).
    static func isFromService(_ response: Response) -> Bool {
        guard let body = try? JSONDecoder().decode(ErrorBody.self, from: Data(response.body)) else { return false }
        return body.error.code?.hasPrefix("/IWFND/MED") != true
    }

    /// One message per error detail, or the error's own when it has no details; never empty.
    static func messages(of response: Response) -> [String] {
        guard let body = try? JSONDecoder().decode(ErrorBody.self, from: Data(response.body)) else {
            return ["HTTP \(response.status)"]
        }
        var messages: [String] = []
        for detail in body.error.innererror?.errordetails ?? [] {
            // Gateway repeats the main message among the details.
            guard let message = detail.message, !message.isEmpty, !messages.contains(message) else { continue }
            switch detail.severity?.lowercased() {
            case "info", "success", "warning": continue
            default: messages.append(String(message.prefix(messageLengthMax)))
            }
        }
        if messages.isEmpty { messages = [body.error.message?.value ?? "HTTP \(response.status)"] }
        return Array(messages.prefix(messagesMax))
    }

    // MARK: Retry-After

    /// RFC 9110, 10.2.3: seconds, or a date, which is compared with the answer's own `Date`.
    static func retryAfter(of response: Response) -> Duration? {
        guard let value = response.headers["retry-after"] else { return nil }
        if let seconds = Int(value) { return seconds >= 0 ? .seconds(seconds) : nil }
        guard let then = seconds(ofDate: value), let now = response.headers["date"].flatMap(seconds(ofDate:)) else {
            return nil
        }
        return .seconds(max(0, then - now))
    }

    /// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form RFC 9110, 5.6.7 lets senders use.
    static func seconds(ofDate text: String) -> Int? {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let dayOfMonth = Int(parts[1]),
            let month = months.firstIndex(of: String(parts[2])), let year = Int(parts[3]),
            let day = Day(year: year, month: month + 1, day: dayOfMonth)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int($0) }
        guard clock.count == 3 else { return nil }
        return day.daysSinceEpoch * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    }
}
