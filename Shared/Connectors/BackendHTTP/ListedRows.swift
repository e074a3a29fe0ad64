package import BackendProtocol

/// A row of a back end's list.
package protocol ListedRow: Decodable {
    /// The members that identify a row, and an unreadable row in its report.
    static var idMembers: [String] { get }
}

/// An element of a list, decoded separately: an unreadable row does not prevent decoding of the others.
package enum ListedElement<Row: ListedRow>: Decodable {
    case row(Row)
    /// - Parameters:
    ///   - id: The row's ``ListedRow/idMembers``, as far as they are readable; `nil` if none is.
    ///   - reason: The decoding error.
    case unreadable(id: String?, reason: String)

    package init(from decoder: any Decoder) throws {
        do {
            self = .row(try Row(from: decoder))
        } catch {
            self = .unreadable(id: Self.id(decoder), reason: UnreadableJSON.reason(error, in: decoder))
        }
    }

    /// The decoded row; `nil` if it is unreadable.
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
        return names.isEmpty ? nil : BackendMessage.truncated(names.joined(separator: " "))
    }
}

/// The decoded and the unreadable rows of a list.
package struct ListedRows<Row: ListedRow> {
    package private(set) var rows: [Row] = []
    package private(set) var unreadable: [UnreadableRecord] = []

    /// - Parameter list: The back end's name of the list.
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

/// Describes decoding errors.
package enum UnreadableJSON {
    /// Returns the member and the error, independently of the position of the value in its document.
    package static func reason(_ error: any Error, in decoder: any Decoder) -> String {
        let context: DecodingError.Context
        var missing: [any CodingKey] = []
        switch error {
        case DecodingError.typeMismatch(_, let decodingContext), DecodingError.valueNotFound(_, let decodingContext),
            DecodingError.dataCorrupted(let decodingContext):
            context = decodingContext
        case DecodingError.keyNotFound(let key, let decodingContext): (context, missing) = (decodingContext, [key])
        default: return BackendMessage.truncated("\(error)")
        }
        let path = (context.codingPath.dropFirst(decoder.codingPath.count) + missing).map(\.stringValue)
        let member = path.isEmpty ? "the row" : path.joined(separator: ".")
        return BackendMessage.truncated("\(member): \(missing.isEmpty ? context.debugDescription : "missing")")
    }
}

private struct MemberName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
