internal import BackendHTTP
internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import HTTPClient

/// OData V2 over HTTP: credentials, CSRF tokens, paging, and classification of responses.
struct SAPConnection: Sendable {
    let settings: SAPSettings
    private let client: Client
    private let logins: SharedFetch<SAPLogin>

    static let timeSheet = "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET"
    static let project = "/sap/opu/odata/sap/API_ENTERPRISE_PROJECT_SRV;v=0002"
    static let businessPartner = "/sap/opu/odata/sap/API_BUSINESS_PARTNER"

    /// Maximum size of a response; a page of `pageRowsMax` projects is well below.
    private static let responseBytesMax = 32 * 1024 * 1024
    /// Maximum number of attempts to read a listing whose pages shift meanwhile.
    static let readAttemptsMax = 5

    init(settings: SAPSettings, client: Client) {
        self.settings = settings
        self.client = client
        logins = SharedFetch { await SAPLogin.fetch(client, settings) }
    }

    // MARK: Reading

    /// Reads one entity; `nil` if it does not exist.
    func entity<Entity: Decodable>(_ path: String, as _: Entity.Type) async throws(BackendError) -> Entity? {
        let response = try await read(path + "?$format=json")
        if response.status == 404, SAPResponse.isFromService(response) { return nil }
        try SAPResponse.check(response, isWrite: false)
        return try BackendResponse.decode(ODataEntity<Entity>.self, from: response.body).d
    }

    /// Reads all rows, page by page until a page is short.
    ///
    /// The time-sheet service ignores `$inlinecount` and `$orderby` (SAP KBA 3744148), so pages have the service's
    /// order. Each page begins with the last row of the previous one. If that row differs, rows were added or removed
    /// meanwhile and one may have been skipped: all pages are read again. Unreadable rows do not affect others.
    func rows<Row: SAPRow>(
        _ path: String, filter: String, expand: String? = nil, as _: Row.Type
    ) async throws(BackendError) -> ListedRows<Row> {
        var query = "?$format=json&$filter=" + FormFields.encode(filter)
        if let expand { query += "&$expand=" + FormFields.encode(expand) }
        let pageRowsMax = max(2, settings.pageRowsMax)
        for _ in 0..<SAPConnection.readAttemptsMax {
            var rows: [ListedElement<Row>] = []
            let outcome = try await pages(
                path, query, rowsMax: pageRowsMax, lastRowsMax: pageRowsMax, pagesMax: settings.pagesMax
            ) { (new: ArraySlice<ListedElement<Row>>) in rows += new }
            switch outcome {
            case .complete: return ListedRows(rows, of: path)
            case .shifted: continue
            case .tooLong:
                throw .notProcessed(reason: "\(path) has more than \(rows.count) rows", retryAfter: nil)
            }
        }
        throw .notProcessed(reason: "\(path) changes faster than it can be read", retryAfter: nil)
    }

    /// The end of a paged read.
    enum PagingOutcome {
        case complete
        /// Rows were added or removed meanwhile, so one may have been skipped.
        case shifted
        /// There are more than the maximum number of pages.
        case tooLong
    }

    /// Reads pages until there are no more, each from the last row of the previous one; see
    /// ``rows(_:filter:expand:as:)``.
    ///
    /// - Parameters:
    ///   - rowsMax: The number of rows per request.
    ///   - lastRowsMax: A page of fewer rows is the last one.
    ///   - add: Called with the new rows of each page.
    func pages<Row: SAPRow>(
        _ path: String, _ query: String, rowsMax: Int, lastRowsMax: Int, pagesMax: Int,
        _ add: (ArraySlice<ListedElement<Row>>) -> Void
    ) async throws(BackendError) -> PagingOutcome {
        var (count, last) = (0, String?.none)
        for _ in 0..<pagesMax {
            let response = try await read(path + query + "&$top=\(rowsMax)&$skip=\(max(0, count - 1))")
            try SAPResponse.check(response, isWrite: false)
            let results = try BackendResponse.decode(ODataRows<Row>.self, from: response.body).d.results
            if let last, results.first?.key != last { return .shifted }
            let new = results.dropFirst(last == nil ? 0 : 1)
            add(new)
            count += new.count
            last = results.last?.key
            if results.count < lastRowsMax || new.isEmpty { return .complete }
        }
        return .tooLong
    }

    func read(_ path: String) async throws(BackendError) -> Response {
        try await client.read(
            Request(
                settings.baseURL + path, headers: settings.headers, connectMax: settings.connectMax,
                totalMax: settings.totalMax, responseBytesMax: SAPConnection.responseBytesMax))
    }

    // MARK: Writing

    /// Posts once. A call that is rejected for its CSRF token is not processed, so it is repeated with a new token.
    func post(
        _ path: String, _ body: [UInt8], before deadline: WriteDeadline
    ) async throws(BackendError) -> Response {
        let login = try await logins.current()
        let response = try await post(path, body, login.value, deadline)
        guard SAPResponse.requiresToken(response) else {
            try SAPResponse.check(response, isWrite: true)
            return response
        }
        let second = try await post(path, body, try await logins.replacing(login).value, deadline)
        if SAPResponse.requiresToken(second) {
            throw .notProcessed(reason: "a new CSRF token was rejected as well", retryAfter: nil)
        }
        try SAPResponse.check(second, isWrite: true)
        return second
    }

    private func post(
        _ path: String, _ body: [UInt8], _ login: SAPLogin, _ deadline: WriteDeadline
    ) async throws(BackendError) -> Response {
        let headers = settings.headers + [("Content-Type", "application/json"), ("x-csrf-token", login.token)]
        return try await client.write(
            Request(
                "POST", settings.baseURL + path, headers: headers, body: body, connectMax: settings.connectMax,
                totalMax: settings.totalMax, responseBytesMax: SAPConnection.responseBytesMax,
                sendBefore: deadline.instant, session: login.session))
    }
}

extension SAPSettings {
    /// Basic authentication (RFC 7617), and JSON responses.
    var headers: [(name: String, value: String)] {
        let credentials = Data("\(user):\(password)".utf8).base64EncodedString()
        return [("Authorization", "Basic " + credentials), ("Accept", "application/json")]
    }
}

/// Literals of OData V2.
enum OData {
    /// Returns a string literal: in quotes, with quotes doubled.
    static func literal(_ text: String) -> String {
        // Scalars, not characters: a quote followed by a combining mark is one Character that is not equal to a quote.
        var literal = "'"
        for scalar in text.unicodeScalars {
            if scalar == "'" { literal.unicodeScalars.append("'") }
            literal.unicodeScalars.append(scalar)
        }
        return literal + "'"
    }
}

/// A row of a listing.
protocol SAPRow: ListedRow {
    /// Identifies the row in its listing: the values of its ``ListedRow/idMembers``.
    var key: String { get }
}

extension ListedElement where Row: SAPRow {
    var key: String {
        switch self {
        case .row(let row): row.key
        case .unreadable(let id, _): id ?? ""
        }
    }
}

/// `{"d": {…}}`
struct ODataEntity<Entity: Decodable>: Decodable {
    let d: Entity
}

/// `{"d": {"results": […]}}`
struct ODataRows<Row: ListedRow>: Decodable {
    struct Results: Decodable {
        let results: [ListedElement<Row>]
    }

    let d: Results
}
