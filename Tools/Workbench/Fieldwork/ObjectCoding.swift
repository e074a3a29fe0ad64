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

    static func delete(_ kind: Kind, _ id: UUID) -> Mutation { Mutation(operation: .delete, kind: kind, id: id) }
}

extension DeviceObject {
    /// The fields; `nil` if they cannot be read.
    func decoded<Fields: KindFields>(as _: Fields.Type) -> Fields? {
        try? JSONDecoder().decode(Fields.self, from: Data(fields))
    }
}
