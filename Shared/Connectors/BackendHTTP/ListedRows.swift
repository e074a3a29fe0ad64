package import BackendProtocol

/// A row of a list that a back end gives, mostly page by page.
package protocol ListedRow: Decodable {
    /// The members that name a row of its list: a row that cannot be read is reported by them.
    static var idMembers: [String] { get }
}

/// An element of a list, decoded by itself: a row that cannot be read does not cost the others.
package enum ListedElement<Row: ListedRow>: Decodable {
    case row(Row)
    /// - Parameters:
    ///   - id: Its ``ListedRow/idMembers``, as far as they can be read; `nil` when none can.
    ///   - reason: Why it cannot be read.
    case unreadable(id: String?, reason: String)

    package init(from decoder: any Decoder) throws {
        do {
            self = .row(try Row(from: decoder))
        } catch {
            self = .unreadable(id: Self.id(decoder), reason: UnreadableJSON.reason(error, in: decoder))
        }
    }

    /// `nil`: it cannot be read.
    package var row: Row? {
        switch self {
        case .row(let row): row
        case .unreadable: nil
        }
    }

    private static func id(_ decoder: any Decoder) -> String? {
        guard let members = try? decoder.container(keyedBy: MemberName.self) else { return nil }
        let names = Row.idMembers.compactMap { MemberName(stringValue: $0) }.compactMap { name in
            (try? members.decode(String.self, forKey: name))
                ?? (try? members.decode(Int64.self, forKey: name)).map { String($0) }
        }
        return names.isEmpty ? nil : BackendMessage.bounded(names.joined(separator: " "))
    }
}

/// The rows of a list that could be read, and those that could not.
package struct ListedRows<Row: ListedRow> {
    package private(set) var rows: [Row] = []
    package private(set) var unreadable: [UnreadableRecord] = []

    /// - Parameter list: What the back end calls the list.
    package init(_ elements: some Sequence<ListedElement<Row>>, of list: String) {
        for element in elements {
            switch element {
            case .row(let row): rows.append(row)
            case .unreadable(let id, let reason):
                unreadable.append(UnreadableRecord(list: list, id: id, reason: reason))
            }
        }
    }
}

extension ListedElement: Sendable where Row: Sendable {}
extension ListedRows: Sendable where Row: Sendable {}

/// Describes why a value cannot be decoded.
package enum UnreadableJSON {
    /// - Returns: The member with what was found instead, the same wherever in a document the value is.
    package static func reason(_ error: any Error, in decoder: any Decoder) -> String {
        let context: DecodingError.Context
        var missing: [any CodingKey] = []
        switch error {
        case DecodingError.typeMismatch(_, let found), DecodingError.valueNotFound(_, let found),
            DecodingError.dataCorrupted(let found):
            context = found
        case DecodingError.keyNotFound(let key, let found): (context, missing) = (found, [key])
        default: return BackendMessage.bounded("\(error)")
        }
        let path = (context.codingPath.dropFirst(decoder.codingPath.count) + missing).map(\.stringValue)
        let place = path.isEmpty ? "the row" : path.joined(separator: ".")
        return BackendMessage.bounded("\(place): \(missing.isEmpty ? context.debugDescription : "it is missing")")
    }
}

private struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
