internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// e-conomic's JSON over HTTP: tokens, paging, and classification of responses.
///
/// Source: the vendor's OpenAPI document of v20.0.0 (https://apis.e-conomic.com). Responses omit false booleans and
/// nulls. A listing has pages of at most 1,000 rows, ordered by number: a page's cursor is the number of the next
/// page's first row, and the last page has none.
struct EconomicConnection: Sendable {
    let settings: EconomicSettings
    private let client: Client

    /// The supported version of the Projects API.
    static let root = "/api/v20.0.0"
    /// Maximum size of a response; 1,000 rows are well below.
    private static let responseBytesMax = 32 * 1024 * 1024

    init(settings: EconomicSettings, client: Client) {
        self.settings = settings
        self.client = client
    }

    // MARK: Reading

    /// Reads one row; `nil` if it does not exist.
    func row<Row: Decodable>(_ path: String, as _: Row.Type) async throws(BackendError) -> Row? {
        let response = try await client.read(request("GET", path))
        if response.status == 404, EconomicResponse.isFromService(response) { return nil }
        try EconomicResponse.check(response, isWrite: false)
        return try BackendResponse.decode(Row.self, from: response.body)
    }

    /// Reads all rows, each once, ordered by number. A listing without an end is an error. Unreadable rows do not
    /// affect others.
    ///
    /// - Parameter filter: Predicates such as `employeeNumber$eq:7$and:date$gte:2015-03-30`.
    func rows<Row: EconomicRow>(
        _ path: String, filter: String? = nil, as _: Row.Type
    ) async throws(BackendError) -> ListedRows<Row> {
        var rows: [Int: Row] = [:]
        var unreadable: [ListedElement<Row>] = []
        var cursor: String?
        var trail = PageTrail()
        for _ in 0..<settings.pagesMax {
            guard let page = try await page(path, filter: filter, cursor: cursor, as: Row.self) else {
                throw .notProcessed(reason: "\(path): the cursor of a page is rejected", retryAfter: nil)
            }
            for element in page.rows {
                switch element {
                case .row(let row): rows[row.number] = row
                case .unreadable: unreadable.append(element)
                }
            }
            guard let next = page.next else {
                let sorted = rows.values.sorted { $0.number < $1.number }
                return ListedRows(sorted.map { .row($0) } + unreadable, of: path)
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
    /// - Returns: The rows, the next page's cursor, and the service's own time (`Date`) in seconds since 1970; `nil` if
    ///   the cursor is rejected.
    func page<Row: EconomicRow>(
        _ path: String, filter: String?, cursor: String?, as _: Row.Type
    ) async throws(BackendError) -> (rows: [ListedElement<Row>], next: String?, timeSeconds: Int?)? {
        var query: [String] = []
        if let cursor { query.append("Cursor=" + FormFields.encode(cursor)) }
        if let filter { query.append("Filter=" + FormFields.encode(filter)) }
        let response = try await client.read(
            request("GET", query.isEmpty ? path : path + "?" + query.joined(separator: "&")))
        if cursor != nil, response.status == 400 || response.status == 404 { return nil }
        try EconomicResponse.check(response, isWrite: false)
        let page = try BackendResponse.decode(EconomicPage<Row>.self, from: response.body)
        return (
            page.items ?? [], page.cursor.flatMap { $0.isEmpty ? nil : $0 },
            response.headers["date"].flatMap(Timestamp.seconds(ofHTTPDate:))
        )
    }

    // MARK: Writing

    /// Sends a request once.
    ///
    /// - Returns: A 2xx response; or 409 if the row has another version meanwhile and nothing was changed.
    func write(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, before deadline: WriteDeadline
    ) async throws(BackendError) -> Response {
        var request = request(method, path, body)
        request.sendBefore = deadline.instant
        let response = try await client.write(request)
        if response.status == 409, method != "POST", EconomicResponse.isFromService(response) { return response }
        try EconomicResponse.check(response, isWrite: true)
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
            responseBytesMax: EconomicConnection.responseBytesMax)
    }
}

/// A row of a listing.
protocol EconomicRow: ListedRow {
    /// Identifies the row in its listing.
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

/// Classification of e-conomic's responses.
enum EconomicResponse {
    /// The body of an error. The types of all members distinguish it from a proxy's.
    private struct ErrorBody: Decodable {
        let errorCode: String?
        let message: String?
        let property: String?
        let logId: String?
    }

    /// Verifies that a response has a 2xx status.
    ///
    /// - Throws: The error that corresponds to any other status.
    static func check(_ response: Response, isWrite: Bool) throws(BackendError) {
        try BackendResponse.check(
            response, isWrite: isWrite, isFromService: isFromService(response), messages: [message(of: response)])
    }

    /// Returns whether an error was returned by e-conomic itself, and not by a proxy.
    static func isFromService(_ response: Response) -> Bool {
        guard let body = body(of: response) else { return false }
        return body.message != nil || body.errorCode != nil
    }

    static func message(of response: Response) -> String {
        let body = body(of: response)
        return body?.message ?? body?.errorCode ?? "HTTP \(response.status)"
    }

    private static func body(of response: Response) -> ErrorBody? {
        BackendResponse.decoded(ErrorBody.self, from: response.body)
    }
}
