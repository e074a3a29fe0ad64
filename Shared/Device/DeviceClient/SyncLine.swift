import Essentials
public import Model

/// A line of the response to `POST /v1/sync`.
public enum SyncLine: Equatable, Sendable {
    /// A change of an object: its new state or a tombstone.
    public struct Change: Equatable, Sendable {
        /// The object's identity.
        public let id: ObjectID
        /// The new state; `nil` is a tombstone.
        public let object: DeviceObject?

        /// Creates a change.
        public init(id: ObjectID, object: DeviceObject?) {
            self.id = id
            self.object = object
        }
    }

    /// A realm follows; on a reset the device discards its copy of it.
    case open(RealmPath, isReset: Bool)
    /// The realm is not permitted, or no longer permitted.
    case closed(RealmPath)
    /// Changes of a realm's objects. A cursor is the position at which to resume after this line.
    case objects(RealmPath, cursor: String?, [Change])
    /// All realms are complete up to the position. The cursor applies to all open realms, except those listed by path.
    case checkpoint(position: Int64, cursor: String?, cursors: [RealmPath: String])
    /// Nothing has changed up to the position; the token expires after `expiresInSeconds`.
    case keepalive(expiresInSeconds: Int, position: Int64, cursor: String?, cursors: [RealmPath: String])

    /// An invalid line.
    public struct Problem: Error, Equatable, Sendable, CustomStringConvertible {
        /// The reason, for display.
        public let description: String
    }

    /// Decodes a line, without its objects' fields.
    ///
    /// - Returns: `nil` for an unsupported type of line: the protocol grows by addition.
    /// - Throws: ``Problem`` or `JSONError`.
    public static func read(_ bytes: [UInt8]) throws -> SyncLine? {
        let line = try JSONObject(bytes)
        guard let member = line.members.first else { throw Problem(description: "the line has no key") }
        let key = member.key
        guard ["open", "closed", "objects", "checkpoint", "keepalive"].contains(key) else { return nil }
        let body = try JSONObject(Array(bytes[member.value]))
        switch key {
        case "open": return .open(try realm(of: body), isReset: body.isTrue("reset"))
        case "closed": return .closed(try realm(of: body))
        case "objects": return .objects(try realm(of: body), cursor: body.text(of: "cursor"), try changes(in: body))
        case "checkpoint":
            return .checkpoint(
                position: try number("position", in: body), cursor: body.text(of: "cursor"),
                cursors: try cursors(in: body))
        default:
            return .keepalive(
                expiresInSeconds: Int(clamping: try number("expiresIn", in: body)),
                position: try number("position", in: body), cursor: body.text(of: "cursor"),
                cursors: try cursors(in: body))
        }
    }

    private static func changes(in body: JSONObject) throws -> [Change] {
        let list = Array(body.value(of: "list") ?? [])
        return try JSONCheck.elements(of: list).compactMap { element in
            let object = try JSONObject(Array(list[element]))
            guard let id = object.id(of: "id"), let kind = object.text(of: "kind")
            else { throw Problem(description: "an object has no kind or id") }
            guard let kind = Kind(named: kind) else { throw Problem(description: "there are too many kinds") }
            let position = try number("position", in: object)
            if object.isTrue("deleted") { return Change(id: ObjectID(kind: kind, id: id), object: nil) }
            guard let fields = object.value(of: "fields") else {
                throw Problem(description: "\(kind.rawValue) \(id.text) has no fields but is not deleted")
            }
            return Change(
                id: ObjectID(kind: kind, id: id), object: DeviceObject(position: position, fields: Array(fields)))
        }
    }

    private static func cursors(in body: JSONObject) throws -> [RealmPath: String] {
        guard let value = body.value(of: "cursors") else { return [:] }
        let object = try JSONObject(Array(value))
        return object.members.reduce(into: [:]) { cursors, member in
            if let path = RealmPath(member.key) { cursors[path] = object.text(of: member.key) }
        }
    }

    private static func realm(of body: JSONObject) throws -> RealmPath {
        guard let path = body.text(of: "realm").flatMap({ RealmPath($0) }) else {
            throw Problem(description: "the line has no realm path")
        }
        return path
    }

    private static func number(_ key: String, in body: JSONObject) throws -> Int64 {
        guard let value = body.value(of: key), let number = Int64(String(decoding: value, as: UTF8.self)) else {
            throw Problem(description: "'\(key)' is not a whole number")
        }
        return number
    }
}
