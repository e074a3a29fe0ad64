import Model
import NIOCore
import ObjectStore

/// The lines of a sync stream (NDJSON), written as bytes. Realm paths and cursors need no escaping.
enum Lines {
    /// With more realms open their one cursor is told, but not each realm: a line of 100 KB for every change.
    static let namedCountMax = 100

    static func open(_ realm: RealmPath, isReset: Bool) -> ByteBuffer {
        ByteBuffer(string: "{\"open\":{\"realm\":\"\(realm)\"\(isReset ? ",\"reset\":true" : "")}}\n")
    }

    /// The whole environment, of the kinds that were asked for.
    static func openAll(isReset: Bool) -> ByteBuffer {
        ByteBuffer(string: "{\"open\":{\"all\":true\(isReset ? ",\"reset\":true" : "")}}\n")
    }

    static func closed(_ realm: String) -> ByteBuffer {
        ByteBuffer(string: "{\"closed\":{\"realm\":\"\(realm)\"}}\n")
    }

    /// Up to the cursor's position all the caller's realms are whole.
    ///
    /// - Parameter realms: Those that are open; `nil` when the cursor is the environment's.
    static func checkpoint(_ cursor: Cursor, realms: [RealmPath]?) -> ByteBuffer {
        ByteBuffer(string: "{\"checkpoint\":{\"position\":\(cursor.position),\(cursors(cursor, realms))}}\n")
    }

    /// The token is good for `seconds` more. The cursors are those of a stream in which nothing has happened.
    static func keepalive(expiresIn seconds: Int64, _ cursor: Cursor, realms: [RealmPath]?) -> ByteBuffer {
        let cursors = cursors(cursor, realms)
        return ByteBuffer(
            string: "{\"keepalive\":{\"expiresIn\":\(seconds),\"position\":\(cursor.position),\(cursors)}}\n")
    }

    private static func cursors(_ cursor: Cursor, _ realms: [RealmPath]?) -> String {
        let shared = "\"cursor\":\"\(cursor)\""
        guard let realms, realms.count <= namedCountMax else { return shared }
        let named = realms.map { "\"\($0)\":\"\(cursor)\"" }.joined(separator: ",")
        return "\(shared),\"cursors\":{\(named)}"
    }
}
