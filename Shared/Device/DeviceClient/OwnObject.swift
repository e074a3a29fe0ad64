public import FoundationEssentials
public import Model

/// A string that has one of some values; a later version of the schema file may add others.
public protocol FieldText: RawRepresentable, Hashable, CaseIterable, FieldConvertible where RawValue == String {
    /// Creates a value.
    init(rawValue: String)
}

extension FieldText {
    /// Reads any string.
    public init?(fieldJSON: FieldJSON) {
        guard case .text(let text) = fieldJSON else { return nil }
        self.init(rawValue: text)
    }
    /// The string as JSON.
    public var fieldJSON: FieldJSON { .text(rawValue) }
}

/// An object with typed members. It keeps members that its type does not have.
public protocol TypedFields: FieldConvertible, Codable, Equatable {
    /// All members, also unknown ones.
    var fields: [String: FieldJSON] { get }
    /// Creates an object with these members.
    init(fields: [String: FieldJSON])
}

extension TypedFields {
    /// Returns a member; `nil` if it is absent, null or of another form than its type.
    public subscript<Value: FieldConvertible>(_ name: String) -> Value? {
        fields[name].flatMap { Value(fieldJSON: $0) }
    }

    /// Reads an object.
    public init?(fieldJSON: FieldJSON) {
        guard case .object(let fields) = fieldJSON else { return nil }
        self.init(fields: fields)
    }
    /// The object as JSON.
    public var fieldJSON: FieldJSON { .object(fields) }

    /// Decodes all members.
    public init(from decoder: any Decoder) throws { self.init(fields: try [String: FieldJSON](from: decoder)) }
    /// Encodes all members.
    public func encode(to encoder: any Encoder) throws { try fields.encode(to: encoder) }
}

/// An object in a field.
public protocol NestedObject: TypedFields {
    /// All members, also unknown ones.
    var fields: [String: FieldJSON] { get set }
}

extension NestedObject {
    /// A member; `nil` if it is absent, null or of another form than its type. Setting `nil` removes it.
    public subscript<Value: FieldConvertible>(_ name: String) -> Value? {
        get { fields[name].flatMap { Value(fieldJSON: $0) } }
        set { fields[name] = newValue?.fieldJSON }
    }
}

/// An object of an own kind, as `fieldpost schema generate swift` declares it. It is read-only: to change the object,
/// queue its `Change`.
public protocol OwnObject: TypedFields {
    /// The kind's name in the schema file.
    static var kindName: String { get }
    /// The paths of its references to images and documents.
    static var blobPaths: [[FieldStep]] { get }
}

/// A step from a value of a field to those in it.
public enum FieldStep: Equatable, Sendable {
    /// A member of an object.
    case member(String)
    /// Each element of a list.
    case each
    /// Each member of an object, except those of these names.
    case others([String])
}

extension OwnObject {
    /// No references: the default.
    public static var blobPaths: [[FieldStep]] { [] }

    /// Returns the ids of the images and documents that an object refers to.
    static func blobs(in fields: [UInt8]) -> Set<UUID> {
        guard let object = try? JSONDecoder().decode(FieldJSON.self, from: Data(fields)) else { return [] }
        let values = blobPaths.flatMap { path in
            path.reduce([object]) { values, step in values.flatMap { $0.values(at: step) } }
        }
        return Set(values.compactMap { UUID(fieldJSON: $0) })
    }

    /// Reads an object as shown.
    ///
    /// - Throws: `DecodingError`.
    public init(_ object: DeviceObject) throws {
        self = try JSONDecoder().decode(Self.self, from: Data(object.fields))
    }
}

extension RealmContent {
    /// Returns the objects of an own kind by their ids.
    ///
    /// - Throws: `DecodingError`.
    public func objects<Object: OwnObject>(_ type: Object.Type) throws -> [UUID: Object] {
        var objects: [UUID: Object] = [:]
        for (object, content) in self where object.kind.rawValue == type.kindName {
            objects[object.id] = try Object(content)
        }
        return objects
    }
}

// MARK: Writes

/// A mutation of an object of an own kind, and the realm in which the object is.
public struct ObjectWrite: Equatable, Sendable {
    /// The mutation.
    public let mutation: Mutation
    /// The object's realm.
    public let realm: RealmPath

    init(
        _ operation: Mutation.Operation, _ kindName: String, _ id: UUID, _ fields: [String: FieldJSON]? = nil,
        in realm: RealmPath
    ) {
        guard let kind = Kind(named: kindName) else { preconditionFailure("the process uses too many names of kinds") }
        var json: [UInt8] = []
        if let fields { FieldJSON.object(fields).append(to: &json) }
        mutation = Mutation(operation: operation, kind: kind, id: id, fields: fields == nil ? nil : json)
        self.realm = realm
    }
}

extension DeviceState {
    /// Queues a write of an own kind, which is shown immediately.
    ///
    /// - Throws: ``InvalidMutation`` if the server could not read it; then nothing is queued.
    public mutating func enqueue(_ write: ObjectWrite) throws(InvalidMutation) -> Update {
        try enqueue(write.mutation, in: write.realm)
    }
}

/// The new value of a field that may be absent.
public enum FieldUpdate<Value: FieldConvertible>: Sendable {
    /// A value.
    case to(Value)
    /// No value.
    case null

    /// The value or null as JSON.
    public var fieldJSON: FieldJSON {
        switch self {
        case .to(let value): value.fieldJSON
        case .null: .null
        }
    }
}

/// The fields of a new object that people may write.
public protocol NewObject: Sendable {
    /// The kind's name in the schema file.
    static var kindName: String { get }
    /// The fields that were given.
    var fields: [String: FieldJSON] { get }
}

/// A new object that people may create in a personal realm.
public protocol NewInUserRealm: NewObject {}
extension NewInUserRealm {
    /// Creates the object in the realm of the person with this address.
    ///
    /// - Throws: `InvalidRealmPath` if the address is empty or has characters that a path must not have.
    public func inUser(_ email: String, id: UUID) throws(InvalidRealmPath) -> ObjectWrite {
        ObjectWrite(.put, Self.kindName, id, fields, in: try .user(email))
    }
}

/// A new object that people may create in a team's realm.
public protocol NewInTeamRealm: NewObject {}
extension NewInTeamRealm {
    /// Creates the object in the realm of a team.
    public func inTeam(_ team: UUID, id: UUID) -> ObjectWrite {
        ObjectWrite(.put, Self.kindName, id, fields, in: .team(team))
    }
}

/// A new object that people may create in the realm `/common`.
public protocol NewInCommonRealm: NewObject {}
extension NewInCommonRealm {
    /// Creates the object in the realm `/common`.
    public func inCommon(id: UUID) -> ObjectWrite { ObjectWrite(.put, Self.kindName, id, fields, in: .common) }
}

/// A new object that people may create in the realm `/manager`.
public protocol NewInManagerRealm: NewObject {}
extension NewInManagerRealm {
    /// Creates the object in the realm `/manager`.
    public func inManager(id: UUID) -> ObjectWrite { ObjectWrite(.put, Self.kindName, id, fields, in: .manager) }
}

/// A change of the fields that people may change. Other fields keep their values.
public protocol ObjectChange: Sendable {
    /// The kind's name in the schema file.
    static var kindName: String { get }
    /// The fields that were given.
    var fields: [String: FieldJSON] { get }
}

extension ObjectChange {
    /// Changes an object in its realm.
    public func of(_ id: UUID, in realm: RealmPath) -> ObjectWrite {
        ObjectWrite(.patch, Self.kindName, id, fields, in: realm)
    }
}

/// An object that people may delete.
public protocol DeletableObject: OwnObject {}
extension DeletableObject {
    /// Deletes an object in its realm.
    public static func delete(_ id: UUID, in realm: RealmPath) -> ObjectWrite {
        ObjectWrite(.delete, kindName, id, in: realm)
    }
}
