import AdminQueries
import CommandLineSupport
import Essentials

extension RealmContentReader {
    /// Maximum number of characters of an object's fields in a table.
    private static let fieldsShownMax = 100

    static func table(_ counts: [Count]) -> Table {
        Table(
            ["KIND", .right("OBJECTS"), .right("DELETED"), .right("LAST POSITION")], counts, empty: "the realm is empty"
        ) { [$0.kind, "\($0.count)", "\($0.deleted)", "\($0.lastPosition)"] }
    }

    static func table(_ objects: [Object]) -> Table {
        Table(
            ["KIND", "ID", .right("POSITION"), .right("EDITED"), "FIELDS"], objects, empty: "no objects match"
        ) { object in
            let fields = object.fields
            let shown = fields.count > fieldsShownMax ? fields.prefix(fieldsShownMax) + "…" : fields[...]
            return [object.kind, object.id.text, "\(object.position)", "\(object.editPosition)", String(shown)]
        }
    }
}
