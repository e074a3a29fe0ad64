internal import BackendHTTP
package import BackendProtocol
internal import FoundationEssentials
internal import HTTPClient

/// What queries find.
extension CompassClient {
    /// Runs a query.
    ///
    /// - Parameter query: As ``create(_:)`` or ``query(_:)`` gave it.
    /// - Throws: `refused` when the query is gone, or cannot be run.
    package func run(_ query: QueryDefinition) async throws(BackendError) -> ResultSet {
        guard let id = query.id else { throw .refused(["The query \(query.name) was not created"]) }
        // A result that fills all pages that may be read counts as too long, so none is cut unseen.
        let options = OptionsBody.Options(
            pageSize: settings.pageRowsMax, maxResultSetRows: settings.pageRowsMax * settings.pagesMax,
            enableRecordCount: false, convertToLocalTime: true,
            maxMultiLineTextLength: settings.multiLineTextLengthMax)
        guard let json = try? JSONEncoder().encode(OptionsBody(resultSetOptions: options)) else {
            throw .refused(["The options of a result set cannot be written as JSON"])
        }
        let path = "/workspace/queryDefs/\(try CompassConnection.segment(id))/resultsets"
        let response = try await connection.write("POST", path, Array(json))
        try CompassAnswer.check(response, isWrite: true, connection.account)
        guard let set = HTTPAnswer.decoded(ResultSetBody.self, from: response.body) else {
            // Whether there is one more result set that nobody reads does not matter.
            throw .notProcessed(reason: "HTTP \(response.status) without the id of a result set", retryAfter: nil)
        }
        return ResultSet(
            id: set.result_set_id.text, query: id, columns: query.columns.map(\.field),
            pageRowsMax: settings.pageRowsMax)
    }

    /// Reads a page of a result set.
    ///
    /// - Parameters:
    ///   - number: From 1 to ``CompassSettings/pagesMax``; beyond it throws `notProcessed`: nothing is cut silently.
    ///   - previous: The page before it, to notice a server that gives the same page again and again.
    /// - Throws: `notProcessed` too where the server has let go of the result set.
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
        try CompassAnswer.check(response, isWrite: false, connection.account)
        let body = try HTTPAnswer.decode(PageBody.self, from: response.body)
        var rows: [ResultRow] = []
        var unreadable: [UnreadableRecord] = []
        rows.reserveCapacity(body.rows?.count ?? 0)
        for row in body.rows ?? [] {
            do throws(UnreadableValues) {
                rows.append(ResultRow(columns: set.columns, values: try row.texts(for: set.columns)))
            } catch {
                let id = error.id.map { BackendMessage.bounded($0) }
                unreadable.append(UnreadableRecord(list: "a result set", id: id, reason: error.reason))
            }
        }
        if let previous, !rows.isEmpty, rows == previous.rows {
            throw .notProcessed(reason: "page \(number) of a result set is the page before it again", retryAfter: nil)
        }
        return ResultPage(
            rows: rows, isLast: rows.count + unreadable.count < set.pageRowsMax, unreadable: unreadable)
    }

    /// Runs a query and reads all of its rows, at most ``CompassSettings/pagesMax`` pages.
    ///
    /// - Throws: `notProcessed` too where one cannot be read.
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

/// `{"resultSetOptions": {…}}`, as the vendor's Node-RED client sends it.
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
    /// Each value of a row is decoded by itself.
    struct Row: Decodable {
        struct Value: Decodable {
            /// `nil`: it is no text. Null is an empty one.
            let text: String?

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                text = container.decodeNil() ? "" : (try? NumberOrText(from: decoder))?.text
            }
        }

        private let values: [Value]?

        private enum CodingKeys: CodingKey { case values }

        init(from decoder: any Decoder) throws {
            values = try? decoder.container(keyedBy: CodingKeys.self).decode([Value].self, forKey: .values)
        }

        func texts(for columns: [String]) throws(UnreadableValues) -> [String] {
            guard let values else { throw UnreadableValues(id: nil, reason: "it has no list of values") }
            guard values.count == columns.count else {
                throw UnreadableValues(id: nil, reason: "it has \(values.count) values for \(columns.count) columns")
            }
            let id = columns.firstIndex(of: "id").flatMap { values[$0].text }
            var texts: [String] = []
            for (column, value) in zip(columns, values) {
                guard let text = value.text else {
                    throw UnreadableValues(id: id, reason: "its value of \(column) is no text")
                }
                texts.append(text)
            }
            return texts
        }
    }

    let rows: [Row]?
}

/// Why a row of a page cannot be read.
private struct UnreadableValues: Error {
    let id: String?
    let reason: String
}
