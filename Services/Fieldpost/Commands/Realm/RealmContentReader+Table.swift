import AdminQueries
import CommandLineSupport
import Essentials

extension RealmContentReader {
    /// Maximum number of characters of an object's fields in a table.
    private static let fieldsShownMax = 100

    static func table(_ counts: [Count]) -> Table {
        var table = Table(
            [("KIND", .left), ("OBJECTS", .right), ("DELETED", .right), ("LAST POSITION", .right)],
            empty: "the realm is empty")
        for row in counts { table.add([row.kind, "\(row.count)", "\(row.deleted)", "\(row.lastPosition)"]) }
        return table
    }

    static func table(_ objects: [Object]) -> Table {
        var table = Table(
            [("KIND", .left), ("ID", .left), ("POSITION", .right), ("EDITED", .right), ("FIELDS", .left)],
            empty: "no objects match")
        for object in objects {
            let fields = object.fields
            let shown = fields.count > fieldsShownMax ? fields.prefix(fieldsShownMax) + "…" : fields[...]
            table.add([
                object.kind, object.id.text, "\(object.position)", "\(object.editPosition)", String(shown),
            ])
        }
        return table
    }
}
