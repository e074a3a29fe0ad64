import Model
import NIOCore
import ObjectStore

/// The lines of a sync stream (NDJSON). They are written as text, without building values first, because one change
/// writes a checkpoint for each device. Realm paths and cursors need no escaping.
enum SyncLines {
    /// Maximum number of open realms that a checkpoint lists. With more, it has only the shared cursor: otherwise each
    /// change would cost a line of 100 KB.
    static let namedCountMax = 100

    static func open(_ realm: RealmPath, isReset: Bool) -> ByteBuffer {
        ByteBuffer(string: "{\"open\":{\"realm\":\"\(realm)\"\(isReset ? ",\"reset\":true" : "")}}\n")
    }

    /// The line that opens the environment's stream.
    static func openAll(isReset: Bool) -> ByteBuffer {
        ByteBuffer(string: "{\"open\":{\"all\":true\(isReset ? ",\"reset\":true" : "")}}\n")
    }

    static func closed(_ realm: String) -> ByteBuffer {
        ByteBuffer(string: "{\"closed\":{\"realm\":\"\(realm)\"}}\n")
    }

    /// The line that marks a consistent state: at the cursor's position, all the caller's realms are complete.
    ///
    /// - Parameter realms: The open realms; `nil` if the cursor is the environment's.
    static func checkpoint(_ cursor: Cursor, realms: [RealmPath]?) -> ByteBuffer {
        ByteBuffer(string: "{\"checkpoint\":{\"position\":\(cursor.position),\(cursors(cursor, realms))}}\n")
    }

    /// The line of an idle stream. The token expires in `seconds`. The cursors are those of a stream without further
    /// changes.
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
