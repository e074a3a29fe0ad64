import DeviceClient
import FoundationEssentials
import Model

extension Mutation {
    static func put(_ kind: Kind, _ id: UUID, _ fields: some KindFields) throws -> Mutation {
        Mutation(operation: .put, kind: kind, id: id, fields: Array(try JSONEncoder().encode(fields)))
    }

    static func put(_ kind: Kind, _ id: UUID, _ fields: String) -> Mutation {
        Mutation(operation: .put, kind: kind, id: id, fields: Array(fields.utf8))
    }

    static func patch(_ kind: Kind, _ id: UUID, _ fields: String) -> Mutation {
        Mutation(operation: .patch, kind: kind, id: id, fields: Array(fields.utf8))
    }

    /// Puts a deleted object again; `nil` if its content is incomplete.
    static func restore(_ id: UUID, _ deleted: DeletedObject) -> Mutation? {
        let encoder = JSONEncoder()
        let content: (kind: Kind, fields: Data?) =
            switch deleted.kind {
            case .appointment: (.appointment, deleted.appointment.flatMap { try? encoder.encode($0) })
            case .note: (.note, deleted.note.flatMap { try? encoder.encode($0) })
            case .sharedItem: (.sharedItem, deleted.sharedItem.flatMap { try? encoder.encode($0) })
            }
        return content.fields.map { fields in
            Mutation(operation: .put, kind: content.kind, id: id, fields: Array(fields), restores: true)
        }
    }

    static func delete(_ kind: Kind, _ id: UUID) -> Mutation { Mutation(operation: .delete, kind: kind, id: id) }
}

extension DeviceObject {
    /// The fields; `nil` if they cannot be read.
    func decoded<Fields: KindFields>(as _: Fields.Type) -> Fields? {
        try? JSONDecoder().decode(Fields.self, from: Data(fields))
    }
}
