import Model
import Postgres

/// Kinds that environments declare.
extension Relay {
    /// Decodes the rows of ``RelayStore/ownKinds(in:)``.
    mutating func ownRoutes(_ rows: Rows) throws -> [Int16: Routing.Entry] {
        var routes: [Int16: Routing.Entry] = [:]
        for (number, name, topic) in try rows.decode(Int16.self, String.self, String.self) {
            routes[number] = Routing.Entry(own: Kind(number: number, name: name), to: topic)
            guard ownTopics.insert(topic).inserted else { continue }
            unwritable.require(topic)
            reportUnwritable()
        }
        return routes
    }
}
