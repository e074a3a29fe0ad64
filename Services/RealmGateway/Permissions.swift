import FoundationEssentials
import Model

/// What a person may open, and what they may do there.
enum Permissions {
    struct Grant: Sendable, Equatable {
        let realm: RealmPath
        let mayWrite: Bool
    }

    /// Their own realm, which they write to, and the catalogue their `User` object refers to.
    static func grants(own: RealmPath, catalogue: UUID?) -> [Grant] {
        let catalogues = catalogue.map { [Grant(realm: .catalogue($0), mayWrite: false)] } ?? []
        return [Grant(realm: own, mayWrite: true)] + catalogues
    }

    /// The catalogue that the fields of a `User` object refer to.
    static func catalogue(inUser fields: [UInt8]) -> UUID? {
        (try? JSONObject(fields))?.text(of: "catalogue").flatMap { UUID(uuidString: $0) }
    }
}
