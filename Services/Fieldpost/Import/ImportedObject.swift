import Access
import Essentials
import FoundationEssentials
import Model
import Postgres

/// An object to import, with fields valid for its kind.
struct ImportedObject {
    let realm: RealmPath
    let kind: Kind
    let id: UUID
    let fields: CanonicalJSON
    /// The e-mail address of a `Person`.
    let email: String?

    /// Validates the fields as the gateway validates an integration's.
    init(
        _ kind: Kind, _ id: UUID, in realm: RealmPath, fields: [UInt8], email: String?
    ) throws(ImportProblem) {
        guard fields.count <= kind.fieldsBytesMax else {
            throw ImportProblem("the fields have \(fields.count) bytes; at most \(kind.fieldsBytesMax) are allowed")
        }
        let object: JSONObject
        do { object = try JSONObject(fields) } catch { throw ImportProblem("fields: \(error)") }
        if let name = object.members.first(where: { !kind.fieldNames.contains($0.key) })?.key {
            throw ImportProblem(
                "\(kind.rawValue) has no field '\(name.excerpt)'; it has: "
                    + kind.fieldNames.joined(separator: ", "))
        }
        let stored: JSONObject
        do throws(FieldObjection) { stored = try kind.checked(object) } catch {
            throw ImportProblem("not a valid \(kind.rawValue): \(error)")
        }
        if let objection = OwnerRules.objection(to: id, of: kind, stored) { throw ImportProblem(objection) }
        do { self.fields = try CanonicalJSON(stored.bytes) } catch { throw ImportProblem("fields: \(error)") }
        (self.realm, self.kind, self.id, self.email) = (realm, kind, id, email)
    }
}
