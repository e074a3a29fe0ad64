import Essentials
public import FoundationEssentials
public import Model

/// The identity of an object within a realm.
public struct ObjectID: Hashable, Comparable, Codable, Sendable, CustomStringConvertible {
    /// The object's kind.
    public let kind: Kind
    /// The object's id.
    public let id: UUID

    /// Creates the identity of an object.
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

/// The identity of an object on the device: its realm, and its identity within the realm.
public struct ObjectAddress: Hashable, Codable, Sendable {
    /// The realm the object is in.
    public let realm: RealmPath
    /// The object within its realm.
    public let object: ObjectID

    /// Creates the identity of an object of a realm.
    public init(_ realm: RealmPath, _ object: ObjectID) {
        self.realm = realm
        self.object = object
    }
}

/// An object in a device's or the server's copy.
public struct DeviceObject: Equatable, Codable, Sendable {
    /// The position of the object's last change; 0 while only this device has it.
    public let position: Int64
    /// The fields' JSON as received.
    public let fields: [UInt8]

    /// Creates an object at a position.
    public init(position: Int64, fields: [UInt8]) {
        self.position = position
        self.fields = fields
    }

    private enum CodingKeys: CodingKey { case position, fields }

    /// Decodes an object from its stored form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        position = try container.decode(Int64.self, forKey: .position)
        fields = Array(try container.decode(String.self, forKey: .fields).utf8)
    }

    /// Encodes the fields as one string: an array of numbers would be four times as long.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(position, forKey: .position)
        try container.encode(String(decoding: fields, as: UTF8.self), forKey: .fields)
    }
}

/// The objects of a realm.
public typealias RealmContent = [ObjectID: DeviceObject]

extension RealmContent {
    /// Returns all objects of a kind, unordered.
    func objects(of kind: Kind) -> [(id: UUID, object: DeviceObject)] {
        compactMap { $0.key.kind == kind ? ($0.key.id, $0.value) : nil }
    }
}
