import Model
import Realms
import Runtime

/// A body of `POST /v1/sync`.
struct SyncRequest: Sendable {
    /// What the device holds, by realm. A cursor that cannot be read counts as none.
    let cursors: [String: Cursor?]
    let isLive: Bool

    /// - Throws: `Problem` 400.
    init(_ body: [UInt8], realmCountMax: Int) throws(Problem) {
        let object = try Self.object(body, "The body")
        var cursors: [String: Cursor?] = [:]
        var isLive = false
        for member in object.members {
            let value = body[member.value]
            switch member.key {
            case "live":
                isLive = value.elementsEqual("true".utf8)
                guard isLive || value.elementsEqual("false".utf8) else {
                    throw Problems.malformed("'live' must be true or false.")
                }
            case "realms":
                cursors = try Self.cursors(Array(value), countMax: realmCountMax)
            default: throw Problems.malformed("'\(member.key.prefix(64))' is not expected here.")
            }
        }
        self.cursors = cursors
        self.isLive = isLive
    }

    private static func cursors(_ bytes: [UInt8], countMax: Int) throws(Problem) -> [String: Cursor?] {
        let realms = try object(bytes, "'realms'", memberCountMax: countMax)
        var cursors: [String: Cursor?] = [:]
        for realm in realms.members {
            guard RealmPath(realm.key) != nil else {
                throw Problems.malformed("'\(realm.key.prefix(64))' in 'realms' is not a realm's path.")
            }
            let text = realms.text(of: realm)
            guard text != nil || bytes[realm.value].elementsEqual("null".utf8) else {
                throw Problems.malformed("A cursor must be a string or null.")
            }
            cursors[realm.key] = .some(text.flatMap { Cursor($0) })
        }
        return cursors
    }

    private static func object(
        _ bytes: [UInt8], _ name: String, memberCountMax: Int = JSONCheck.memberCountMax
    ) throws(Problem) -> JSONObject {
        do {
            return try JSONObject(bytes, memberCountMax: memberCountMax)
        } catch {
            guard error.reason != .tooManyMembers else {
                throw Problems.malformed("\(name) may have at most \(memberCountMax) members.")
            }
            throw Problems.malformed("\(name): \(error).")
        }
    }
}
