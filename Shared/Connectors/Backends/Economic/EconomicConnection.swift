internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// e-conomic's JSON over HTTP: tokens, paging, and what each answer means.
///
/// Source: the vendor's OpenAPI document of v20.0.0 (https://apis.e-conomic.com). It says that a false boolean and a
/// null are left out of an answer, and that a listing comes in pages of at most 1,000 rows, in the order of their
/// numbers: a page's cursor is the number of the next page's first row, and the last page has none.
struct EconomicConnection: Sendable {
    let settings: EconomicSettings
    private let client: Client

    /// The version of the Projects API that the adapter is written for.
    static let root = "/api/v20.0.0"
    /// An answer's body is at most this large: 1,000 rows are well below.
    private static let answerBytesMax = 32 * 1024 * 1024

    init(settings: EconomicSettings, client: Client) {
        self.settings = settings
        self.client = client
    }

    // MARK: Reading

    /// Reads one row; nil when there is none.
    func row<Row: Decodable>(_ path: String, as _: Row.Type) async throws(BackendError) -> Row? {
        let response = try await client.read(request("GET", path))
        if response.status == 404, EconomicAnswer.isFromService(response) { return nil }
        try EconomicAnswer.check(response, isWrite: false)
        return try HTTPAnswer.decode(Row.self, from: response.body)
    }

    /// Reads all rows to the end, each once, in the order of their numbers. A listing without an end is an error. A row
    /// that cannot be read does not cost the others.
    ///
    /// - Parameter filter: Predicates as `employeeNumber$eq:7$and:date$gte:2015-03-30`.
    func rows<Row: EconomicRow>(
        _ path: String, filter: String? = nil, as _: Row.Type
    ) async throws(BackendError) -> ListedRows<Row> {
        var rows: [Int: Row] = [:]
        var unreadable: [ListedElement<Row>] = []
        var cursor: String?
        var trail = PageTrail()
        for _ in 0..<settings.pagesMax {
            guard let page = try await page(path, filter: filter, cursor: cursor, as: Row.self) else {
                throw .notProcessed(reason: "\(path): the cursor of a page is refused", retryAfter: nil)
            }
            for element in page.rows {
                switch element {
                case .row(let row): rows[row.number] = row
                case .unreadable: unreadable.append(element)
                }
            }
            guard let next = page.next else {
                let known = rows.values.sorted { $0.number < $1.number }
                return ListedRows(known.map { .row($0) } + unreadable, of: path)
            }
            guard trail.follow(next) else {
                throw .notProcessed(reason: PageTrail.problem(of: path, at: next), retryAfter: nil)
            }
            cursor = next
        }
        throw .notProcessed(reason: "\(path) has more than \(settings.pagesMax) pages", retryAfter: nil)
    }

    /// Reads one page of a listing.
    ///
    /// - Returns: Its rows, the next page's cursor, and the service's own time (`Date`) in seconds since 1970; `nil`
    ///   when the cursor is refused.
    func page<Row: EconomicRow>(
        _ path: String, filter: String?, cursor: String?, as _: Row.Type
    ) async throws(BackendError) -> (rows: [ListedElement<Row>], next: String?, timeSeconds: Int?)? {
        var query: [String] = []
        if let cursor { query.append("Cursor=" + URLText.escape(cursor)) }
        if let filter { query.append("Filter=" + URLText.escape(filter)) }
        let response = try await client.read(
            request("GET", query.isEmpty ? path : path + "?" + query.joined(separator: "&")))
        if cursor != nil, response.status == 400 || response.status == 404 { return nil }
        try EconomicAnswer.check(response, isWrite: false)
        let page = try HTTPAnswer.decode(EconomicPage<Row>.self, from: response.body)
        return (
            page.items ?? [], page.cursor.flatMap { $0.isEmpty ? nil : $0 },
            response.headers["date"].flatMap(Timestamp.seconds(ofHTTPDate:))
        )
    }

    // MARK: Writing

    /// Sends once.
    ///
    /// - Returns: 2xx; or 409, where the row has another version by now, and nothing was done.
    func write(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, before deadline: WriteDeadline
    ) async throws(BackendError) -> Response {
        var request = request(method, path, body)
        request.sendBefore = deadline.instant
        let response = try await client.write(request)
        if response.status == 409, method != "POST", EconomicAnswer.isFromService(response) { return response }
        try EconomicAnswer.check(response, isWrite: true)
        return response
    }

    private func request(_ method: String, _ path: String, _ body: [UInt8]? = nil) -> Request {
        var headers = [
            (name: "X-AppSecretToken", value: settings.appSecretToken),
            (name: "X-AgreementGrantToken", value: settings.agreementGrantToken),
            (name: "Accept", value: "application/json"),
        ]
        if body != nil { headers.append((name: "Content-Type", value: "application/json")) }
        return Request(
            method, settings.baseURL + EconomicConnection.root + path, headers: headers, body: body,
            connectMax: settings.connectMax, totalMax: settings.totalMax,
            answerBytesMax: EconomicConnection.answerBytesMax)
    }
}

/// A row of a listing.
protocol EconomicRow: ListedRow {
    /// What identifies it in its listing.
    var number: Int { get }
}

extension EconomicRow {
    static var idMembers: [String] { ["number"] }
}

/// `{"cursor": "34781", "items": […]}`
struct EconomicPage<Row: ListedRow>: Decodable {
    let cursor: String?
    let items: [ListedElement<Row>]?
}

/// What an answer's status and body mean.
enum EconomicAnswer {
    /// The body of an error.
    private struct ErrorBody: Decodable {
        let errorCode: String?
        let message: String?
        let property: String?
        let logId: String?
    }

    /// - Throws: What any answer but 2xx stands for.
    static func check(_ response: Response, isWrite: Bool) throws(BackendError) {
        try HTTPAnswer.check(
            response, isWrite: isWrite, isFromService: isFromService(response), messages: [message(of: response)])
    }

    /// Whether an error is e-conomic's own, and not that of something before it.
    static func isFromService(_ response: Response) -> Bool {
        guard let body = body(of: response) else { return false }
        return body.message != nil || body.errorCode != nil
    }

    static func message(of response: Response) -> String {
        let body = body(of: response)
        return body?.message ?? body?.errorCode ?? "HTTP \(response.status)"
    }

    private static func body(of response: Response) -> ErrorBody? {
        HTTPAnswer.decoded(ErrorBody.self, from: response.body)
    }
}
