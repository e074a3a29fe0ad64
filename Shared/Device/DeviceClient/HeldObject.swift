import Essentials
public import FoundationEssentials
public import Model

/// Names an object within a realm.
public struct ObjectID: Hashable, Comparable, Codable, Sendable, CustomStringConvertible {
    /// The object's kind.
    public let kind: Kind
    /// The object's id.
    public let id: UUID

    /// The name of an object.
    public init(kind: Kind, id: UUID) {
        self.kind = kind
        self.id = id
    }

    /// Kind and id in one line.
    public var description: String { "\(kind.rawValue) \(id.text)" }

    /// Orders by kind, then by id.
    public static func < (left: Self, right: Self) -> Bool {
        left.kind == right.kind ? left.id < right.id : left.kind.rawValue < right.kind.rawValue
    }
}

/// Names an object on the device: its realm, and which of its objects.
public struct ObjectAddress: Hashable, Codable, Sendable {
    /// The realm the object is in.
    public let realm: RealmPath
    /// The object within its realm.
    public let object: ObjectID

    /// The name of an object of a realm.
    public init(_ realm: RealmPath, _ object: ObjectID) {
        self.realm = realm
        self.object = object
    }
}

/// An object as a device, or the server, holds it.
public struct HeldObject: Equatable, Codable, Sendable {
    /// Where the object was changed last; 0 while only this device knows it.
    public let position: Int64
    /// The fields' JSON as it came.
    public let fields: [UInt8]

    /// An object at a position.
    public init(position: Int64, fields: [UInt8]) {
        self.position = position
        self.fields = fields
    }

    private enum CodingKeys: CodingKey { case position, fields }

    /// Reads what ``encode(to:)`` wrote.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        position = try container.decode(Int64.self, forKey: .position)
        fields = Array(try container.decode(String.self, forKey: .fields).utf8)
    }

    /// Writes the fields as one string: an array of numbers would be four times as long.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(position, forKey: .position)
        try container.encode(String(decoding: fields, as: UTF8.self), forKey: .fields)
    }
}

/// The objects of a realm.
public typealias RealmContent = [ObjectID: HeldObject]

extension RealmContent {
    /// All objects of a kind, in no order.
    func objects(of kind: Kind) -> [(id: UUID, object: HeldObject)] {
        compactMap { $0.key.kind == kind ? ($0.key.id, $0.value) : nil }
    }
}
