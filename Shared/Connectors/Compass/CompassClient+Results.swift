internal import BackendHTTP
package import BackendProtocol
internal import FoundationEssentials
internal import HTTPClient

/// Query results.
extension CompassClient {
    /// Runs a query.
    ///
    /// - Parameters:
    ///   - query: A query from ``create(_:)`` or ``query(_:)``.
    ///   - mayBeForbidden: Whether a 403 concerns the query, because a person chose it, and not the account.
    /// - Throws: `refused` if the query was deleted or cannot be run.
    package func run(
        _ query: QueryDefinition, mayBeForbidden: Bool = false
    ) async throws(BackendError) -> ResultSet {
        guard let id = query.id else { throw .refused(["The query \(query.name) was not created"]) }
        // A result that fills the maximum number of pages counts as too long, so that no result is truncated silently.
        let options = OptionsBody.Options(
            pageSize: settings.pageRowsMax, maxResultSetRows: settings.pageRowsMax * settings.pagesMax,
            enableRecordCount: false, convertToLocalTime: true,
            maxMultiLineTextLength: settings.multiLineTextLengthMax)
        guard let json = try? JSONEncoder().encode(OptionsBody(resultSetOptions: options)) else {
            throw .refused(["The options of a result set cannot be encoded as JSON"])
        }
        let path = "/workspace/queryDefs/\(try CompassConnection.segment(id))/resultsets"
        let response = try await connection.write("POST", path, Array(json))
        try CompassResponse.check(response, isWrite: true, mayBeForbidden: mayBeForbidden, connection.account)
        guard let set = BackendResponse.decoded(ResultSetBody.self, from: response.body) else {
            // An unused result set on the server is harmless.
            throw .notProcessed(reason: "HTTP \(response.status) without the id of a result set", retryAfter: nil)
        }
        return ResultSet(
            id: set.result_set_id.text, query: id, columns: query.columns.map(\.field),
            pageRowsMax: settings.pageRowsMax)
    }

    /// Reads a page of a result set.
    ///
    /// - Parameters:
    ///   - number: From 1 to ``CompassSettings/pagesMax``; a larger number throws `notProcessed`.
    ///   - previous: The previous page, to detect a server that repeats a page.
    /// - Throws: `notProcessed`, also if the server has discarded the result set.
    package func page(
        _ number: Int, of set: ResultSet, after previous: ResultPage? = nil
    ) async throws(BackendError) -> ResultPage {
        guard (1...settings.pagesMax).contains(number) else {
            throw .notProcessed(reason: "a result set of more than \(settings.pagesMax) pages", retryAfter: nil)
        }
        let path =
            "/workspace/queryDefs/\(try CompassConnection.segment(set.query))/resultsets/"
            + (try CompassConnection.segment(set.id))
        let response = try await connection.read(path + CompassAssumptions.query(ofPage: number))
        try CompassResponse.check(response, isWrite: false, connection.account)
        let body = try BackendResponse.decode(PageBody.self, from: response.body)
        var rows: [ResultRow] = []
        var unreadable: [UnreadableRecord] = []
        rows.reserveCapacity(body.rows?.count ?? 0)
        for row in body.rows ?? [] {
            do throws(UnreadableValues) {
                rows.append(ResultRow(columns: set.columns, values: try row.texts(for: set.columns)))
            } catch {
                let id = error.id.map { BackendMessage.truncated($0) }
                unreadable.append(UnreadableRecord(list: "a result set", id: id, reason: error.reason))
            }
        }
        if let previous, !rows.isEmpty, rows == previous.rows {
            throw .notProcessed(reason: "page \(number) of a result set repeats the previous page", retryAfter: nil)
        }
        return ResultPage(
            rows: rows, isLast: rows.count + unreadable.count < set.pageRowsMax, unreadable: unreadable)
    }

    /// Runs a query and reads all rows, at most ``CompassSettings/pagesMax`` pages.
    ///
    /// - Throws: `notProcessed`, also if a row is unreadable.
    package func rows(of query: QueryDefinition) async throws(BackendError) -> [ResultRow] {
        let set = try await run(query)
        var rows: [ResultRow] = []
        var page: ResultPage?
        var number = 1
        while page?.isLast != true {
            let next = try await self.page(number, of: set, after: page)
            if let first = next.unreadable.first {
                throw .notProcessed(reason: "a row cannot be read: \(first)", retryAfter: nil)
            }
            rows += next.rows
            page = next
            number += 1
        }
        return rows
    }
}

/// `{"resultSetOptions": {…}}`, as sent by the vendor's Node-RED client.
private struct OptionsBody: Encodable {
    struct Options: Encodable {
        let pageSize: Int
        let maxResultSetRows: Int
        let enableRecordCount: Bool
        let convertToLocalTime: Bool
        let maxMultiLineTextLength: Int
    }

    let resultSetOptions: Options
}

private struct ResultSetBody: Decodable { let result_set_id: NumberOrText }

private struct PageBody: Decodable {
    /// A row whose values are decoded separately.
    struct Row: Decodable {
        private let values: [ValueBody]?

        private enum CodingKeys: CodingKey { case values }

        init(from decoder: any Decoder) throws {
            values = try? decoder.container(keyedBy: CodingKeys.self).decode([ValueBody].self, forKey: .values)
        }

        func texts(for columns: [String]) throws(UnreadableValues) -> [String] {
            guard let values else { throw UnreadableValues(id: nil, reason: "the list of values is missing") }
            guard values.count == columns.count else {
                throw UnreadableValues(id: nil, reason: "\(values.count) values for \(columns.count) columns")
            }
            let id = columns.firstIndex(of: "id").flatMap { values[$0].text }
            var texts: [String] = []
            for (column, value) in zip(columns, values) {
                guard let text = value.text else {
                    throw UnreadableValues(id: id, reason: "the value of \(column) is not a text")
                }
                texts.append(text)
            }
            return texts
        }
    }

    let rows: [Row]?
}

/// The reason why a row of a page is unreadable.
private struct UnreadableValues: Error {
    let id: String?
    let reason: String
}
