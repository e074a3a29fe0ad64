import AdminQueries
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// An object that is not the same in two realms.
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

    /// Compares two realms, however large: both are read by pages in the order of kinds and ids.
    ///
    /// - Returns: The first differences by kind and id.
    static func list(
        _ first: RealmContentReader, _ second: RealmContentReader, countMax: Int, on connection: inout Connection
    ) throws -> [RealmDifference] {
        var (left, right) = (RealmPages(first), RealmPages(second))
        var differences: [RealmDifference] = []
        while differences.count < countMax {
            let (a, b) = (try left.head(on: &connection), try right.head(on: &connection))
            guard let place = [a?.place, b?.place].compactMap(\.self).min() else { break }
            let found = (a?.place == place ? a : nil, b?.place == place ? b : nil)
            if found.0 != nil { left.drop() }
            if found.1 != nil { right.drop() }
            if let difference = try difference(at: place, found.0?.fields, found.1?.fields) {
                differences.append(difference)
            }
        }
        return differences
    }

    private static func difference(
        at place: RealmPages.Place, _ first: CanonicalJSON?, _ second: CanonicalJSON?
    ) throws -> RealmDifference? {
        if first == second { return nil }
        let kind = Kind(number: place.kind)?.rawValue ?? "kind \(place.kind)"
        guard let first else { return RealmDifference(state: .onlyInSecond, kind: kind, id: place.id, fields: []) }
        guard let second else { return RealmDifference(state: .onlyInFirst, kind: kind, id: place.id, fields: []) }
        return RealmDifference(state: .differs, kind: kind, id: place.id, fields: try names(first, second))
    }

    private static func names(_ first: CanonicalJSON, _ second: CanonicalJSON) throws -> [String] {
        let (first, second) = (try JSONObject(first.bytes), try JSONObject(second.bytes))
        let names = Set((first.members + second.members).map(\.key))
        return names.filter { first.value(of: $0) != second.value(of: $0) }.sorted()
    }

    static func table(_ rows: [RealmDifference], _ first: String, _ second: String) -> Table {
        var table = Table(
            [("", .left), ("KIND", .left), ("ID", .left), ("FIELDS", .left)],
            empty: "\(first) and \(second) have the same objects")
        for row in rows {
            table.add([row.state.rawValue, row.kind, row.id.text, row.fields.joined(separator: ", ")])
        }
        return table
    }
}

/// The objects of a realm that are there, in the order of the primary key.
struct RealmPages {
    struct Place: Comparable {
        var kind: Int16
        var id: UUID

        static func < (left: Self, right: Self) -> Bool { (left.kind, left.id) < (right.kind, right.id) }
    }

    /// Objects that are read at a time: 13 MB where all are as large as can be.
    private static let pageCountMax: Int64 = 200

    private let reader: RealmContentReader
    private var last = Place(kind: 0, id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    private var page: ArraySlice<(place: Place, fields: CanonicalJSON)> = []
    private var isLast = false

    init(_ reader: RealmContentReader) { self.reader = reader }

    /// The next object; `nil`: there are no more.
    mutating func head(on connection: inout Connection) throws -> (place: Place, fields: CanonicalJSON)? {
        if page.isEmpty, !isLast {
            let rows = try connection.run(
                """
                SELECT kind, id, fields FROM store.object
                WHERE environment_id = \(reader.environment.rawValue) AND realm_id = \(reader.realm) AND NOT deleted
                    AND (kind, id) > (\(last.kind), \(last.id))
                ORDER BY kind, id LIMIT \(Self.pageCountMax)
                """)
            page = try rows.decode(Int16.self, UUID.self, CanonicalJSON.self).map { (Place(kind: $0, id: $1), $2) }[...]
            isLast = page.count < Self.pageCountMax
            last = page.last?.place ?? last
        }
        return page.first
    }

    mutating func drop() { page.removeFirst() }
}
