import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// Creates ids, times and contents for the tests of lists.
enum HeldContents {
    /// Returns the same id for the same number, which is in both halves: paired ids are unique.
    static func id(_ number: UInt8) -> UUID {
        UUID(uuid: (number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number))
    }

    /// Returns a time relative to the tests' current time.
    static func minute(_ count: Int64) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: 1_700_000_000_000 + count * 60_000)
    }

    static let now = minute(0)
    static let ana = id(1)
    static let bo = id(2)
}

extension [RealmPath: RealmContent] {
    mutating func put(_ kind: Kind, _ id: UUID, _ fields: some Encodable, in realm: RealmPath) throws {
        hold(kind, id, Array(try JSONEncoder().encode(fields)), in: realm)
    }

    mutating func hold(_ kind: Kind, _ id: UUID, _ fields: [UInt8], in realm: RealmPath) {
        self[realm, default: [:]][ObjectID(kind: kind, id: id)] = DeviceObject(position: 1, fields: fields)
    }
}
