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
                let realms = try Self.object(Array(value), "'realms'")
                guard realms.members.count <= realmCountMax else {
                    throw Problems.malformed("'realms' may name at most \(realmCountMax) realms.")
                }
                for realm in realms.members {
                    guard RealmPath(realm.key) != nil else {
                        throw Problems.malformed("'\(realm.key.prefix(64))' in 'realms' is not a realm's path.")
                    }
                    cursors[realm.key] = .some(realms.text(of: realm.key).flatMap { Cursor($0) })
                    let isText = realms.bytes[realm.value.lowerBound] == UInt8(ascii: "\"")
                    guard isText || realms.bytes[realm.value].elementsEqual("null".utf8) else {
                        throw Problems.malformed("A cursor must be a string or null.")
                    }
                }
            default: throw Problems.malformed("'\(member.key.prefix(64))' is not expected here.")
            }
        }
        self.cursors = cursors
        self.isLive = isLive
    }

    private static func object(_ bytes: [UInt8], _ name: String) throws(Problem) -> JSONObject {
        do { return try JSONObject(bytes) } catch { throw Problems.malformed("\(name): \(error).") }
    }
}
