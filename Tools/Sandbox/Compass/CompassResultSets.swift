/// Result sets with their original content. The oldest are dropped if there are too many or too large ones.
struct CompassResultSets: Sendable {
    struct ResultSet: Sendable {
        let query: Int
        let user: String
        let rows: [[String]]
        let pageRowsMax: Int

        /// From page 1 on; empty beyond the last one.
        func page(_ number: Int) -> ArraySlice<[String]> {
            number > rows.count ? [] : rows.dropFirst((number - 1) * pageRowsMax).prefix(pageRowsMax)
        }
    }

    static let countMax = 10_000
    static let rowsMax = 1_000_000

    private var sets: [Int: ResultSet] = [:]
    private var oldest = 1
    private var nextID = 1
    private var rowCount = 0

    mutating func add(_ set: ResultSet) -> Int {
        sets[nextID] = set
        rowCount += set.rows.count
        nextID += 1
        while sets.count > 1, sets.count > Self.countMax || rowCount > Self.rowsMax {
            rowCount -= sets.removeValue(forKey: oldest)?.rows.count ?? 0
            oldest += 1
        }
        return nextID - 1
    }

    subscript(id: Int) -> ResultSet? { sets[id] }
}
