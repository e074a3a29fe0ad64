import Essentials
import HTTPTypes
import Hummingbird
import NIOCore

/// The entity tag of a response (RFC 9110 §8.8.3).
enum EntityTag {
    /// Returns the tag of content with this digest.
    static func text(_ digest: [UInt8]) -> String { "\"\(Base64URL.text(digest))\"" }
}

extension Request {
    /// Returns whether the device has the version with this tag (RFC 9110 §13.1.2).
    func holds(_ tag: String) -> Bool {
        guard let held = headers[.ifNoneMatch] else { return false }
        let tags = held.split(separator: ",").map { $0.drop { $0 == " " } }
        return tags.contains { $0.hasPrefix("*") || $0.hasPrefix(tag) || $0.hasPrefix("W/" + tag) }
    }
}

extension Response {
    /// Returns content of the caller's environment with its entity tag. Caches compare the tag each time: callers of
    /// other environments get other content from the same address.
    ///
    /// - Parameter content: `nil`: the device has it.
    static func tagged(_ tag: String, _ content: String?, type: String) -> Response {
        var headers: HTTPFields = [.eTag: tag, .cacheControl: "private, no-cache"]
        guard let content else { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = type
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: content)))
    }
}
