import AdminQueries
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// An object that differs between two realms.
struct RealmDifference: Encodable {
    enum State: String, Encodable {
        case onlyInFirst = "only in the first"
        case onlyInSecond = "only in the second"
        case differs = "differs"
    }

    let state: State
    let kind: String
    let id: UUID
    /// The names of the fields that differ.
    let fields: [String]

    /// Compares two realms of any size: both are read by pages in the order of kinds and ids.
    ///
    /// - Returns: The first differences by kind and id.
    static func list(
        _ first: RealmContentReader, _ second: RealmContentReader, countMax: Int, on connection: inout Connection
    ) throws -> [RealmDifference] {
        var (left, right) = (RealmPages(first), RealmPages(second))
        var differences: [RealmDifference] = []
        let names = KindNames()
        while differences.count < countMax {
            let (a, b) = (try left.head(on: &connection), try right.head(on: &connection))
            guard let key = [a?.key, b?.key].compactMap(\.self).min() else { break }
            let pair = (a?.key == key ? a : nil, b?.key == key ? b : nil)
            if pair.0 != nil { left.drop() }
            if pair.1 != nil { right.drop() }
            let kind = try names.kind(key.kind) { try connection.run($0) }?.rawValue ?? "kind \(key.kind)"
            if let difference = try difference(kind, key.id, pair.0?.fields, pair.1?.fields) {
                differences.append(difference)
            }
        }
        return differences
    }

    private static func difference(
        _ kind: String, _ id: UUID, _ first: CanonicalJSON?, _ second: CanonicalJSON?
    ) throws -> RealmDifference? {
        if first == second { return nil }
        guard let first else { return RealmDifference(state: .onlyInSecond, kind: kind, id: id, fields: []) }
        guard let second else { return RealmDifference(state: .onlyInFirst, kind: kind, id: id, fields: []) }
        return RealmDifference(state: .differs, kind: kind, id: id, fields: try names(first, second))
    }

    private static func names(_ first: CanonicalJSON, _ second: CanonicalJSON) throws -> [String] {
        let (first, second) = (try JSONObject(first.bytes), try JSONObject(second.bytes))
        let names = Set((first.members + second.members).map(\.key))
        return names.filter { first.value(of: $0) != second.value(of: $0) }.sorted()
    }

    static func table(_ rows: [RealmDifference], _ first: String, _ second: String) -> Table {
        Table(
            ["DIFFERENCE", "KIND", "ID", "FIELDS"], rows, empty: "\(first) and \(second) have the same objects"
        ) { [$0.state.rawValue, $0.kind, $0.id.text, $0.fields.joined(separator: ", ")] }
    }
}

/// The existing objects of a realm, in the order of the primary key.
struct RealmPages {
    struct Key: Comparable {
        var kind: Int16
        var id: UUID

        static func < (left: Self, right: Self) -> Bool { (left.kind, left.id) < (right.kind, right.id) }
    }

    /// Maximum number of objects per page: 13 MB if all have the maximum size.
    private static let pageCountMax: Int64 = 200

    private let reader: RealmContentReader
    private var last = Key(kind: 0, id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    private var page: ArraySlice<(key: Key, fields: CanonicalJSON)> = []
    private var isLast = false

    init(_ reader: RealmContentReader) { self.reader = reader }

    /// The next object; `nil`: there are no more.
    mutating func head(on connection: inout Connection) throws -> (key: Key, fields: CanonicalJSON)? {
        if page.isEmpty, !isLast {
            let rows = try connection.run(
                """
                SELECT kind, id, fields FROM store.object
                WHERE environment_id = \(reader.environment.rawValue) AND realm_id = \(reader.realm) AND NOT deleted
                    AND (kind, id) > (\(last.kind), \(last.id))
                ORDER BY kind, id LIMIT \(Self.pageCountMax)
                """)
            page = try rows.decode(Int16.self, UUID.self, CanonicalJSON.self).map { (Key(kind: $0, id: $1), $2) }[...]
            isLast = page.count < Self.pageCountMax
            last = page.last?.key ?? last
        }
        return page.first
    }

    mutating func drop() { page.removeFirst() }
}
