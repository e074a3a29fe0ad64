import Access
import Essentials
import FoundationEssentials
import ImportSources
import Model
import Postgres

/// An object that is to be stored, and whose fields are those of its kind.
struct ImportedObject {
    let realm: RealmPath
    let kind: Kind
    let id: UUID
    let fields: CanonicalJSON
    /// Of a `Person`: whose object it is.
    let email: String?

    /// Checks the fields as the gateway checks an integration's.
    init(
        _ kind: Kind, _ id: UUID, in realm: RealmPath, fields: [UInt8], email: String? = nil
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
            throw ImportProblem("this is not a \(kind.rawValue): \(error)")
        }
        if let objection = OwnerRules.objection(to: id, of: kind, stored) { throw ImportProblem(objection) }
        do { self.fields = try CanonicalJSON(stored.bytes) } catch { throw ImportProblem("fields: \(error)") }
        (self.realm, self.kind, self.id, self.email) = (realm, kind, id, email)
    }

    /// An object made of a row of another form.
    init(_ kind: Kind, _ id: UUID, in realm: RealmPath, _ fields: some KindFields) throws(ImportProblem) {
        let bytes: [UInt8]
        do { bytes = Array(try JSONEncoder().encode(fields)) } catch { throw ImportProblem("it cannot be written") }
        try self.init(kind, id, in: realm, fields: bytes)
    }
}
