import Model
import NIOCore
import Realms

/// The lines of a sync stream (NDJSON), written as bytes. Realm paths and cursors need no escaping.
enum Lines {
    /// With more realms open their one cursor is told, but not each realm: a line of 100 KB for every change.
    static let namedCountMax = 100

    static func open(_ realm: RealmPath, isReset: Bool) -> ByteBuffer {
        ByteBuffer(string: "{\"open\":{\"realm\":\"\(realm)\"\(isReset ? ",\"reset\":true" : "")}}\n")
    }

    static func closed(_ realm: String) -> ByteBuffer {
        ByteBuffer(string: "{\"closed\":{\"realm\":\"\(realm)\"}}\n")
    }

    /// Up to `position` all the caller's realms are whole.
    static func checkpoint(_ position: Int64, generation: Int64, realms: [RealmPath]) -> ByteBuffer {
        let cursors = cursors(position, generation: generation, realms: realms)
        return ByteBuffer(string: "{\"checkpoint\":{\"position\":\(position),\(cursors)}}\n")
    }

    /// The token is good for `seconds` more. The cursors are those of a stream in which nothing has happened.
    static func keepalive(
        expiresIn seconds: Int64, position: Int64, generation: Int64, realms: [RealmPath]
    ) -> ByteBuffer {
        let cursors = cursors(position, generation: generation, realms: realms)
        return ByteBuffer(
            string: "{\"keepalive\":{\"expiresIn\":\(seconds),\"position\":\(position),\(cursors)}}\n")
    }

    private static func cursors(_ position: Int64, generation: Int64, realms: [RealmPath]) -> String {
        let cursor = Cursor(generation: generation, start: position, position: position)
        let shared = "\"cursor\":\"\(cursor)\""
        guard realms.count <= namedCountMax else { return shared }
        let named = realms.map { "\"\($0)\":\"\(cursor)\"" }.joined(separator: ",")
        return "\(shared),\"cursors\":{\(named)}"
    }
}
