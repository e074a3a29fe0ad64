import FoundationEssentials
import HTTPTypes
package import Hummingbird
import NIOCore

/// A JSON request body.
package enum JSONBody {
    /// - Throws: `Problem` 413 or 415.
    @concurrent package static func read(_ request: Request, bytesMax: Int) async throws -> [UInt8] {
        let type = request.headers[.contentType]?.split(separator: ";").first?.lowercased() ?? ""
        guard type.split(separator: " ").first == "application/json" else { throw Problem.contentTypeWrong }
        return try await BoundedBytes.read(request, bytesMax: bytesMax)
    }
}

extension Response {
    /// Returns a JSON response that caches must not store.
    package static func json(_ value: some Encodable) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return json(bytes: try encoder.encode(value))
    }

    /// Returns a response of encoded JSON that caches must not store.
    package static func json(bytes: some Sequence<UInt8>) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

/// A request body of arbitrary bytes.
package enum BoundedBytes {
    /// - Throws: `Problem` 413 as soon as the limit is exceeded.
    @concurrent package static func read(_ request: Request, bytesMax: Int) async throws -> [UInt8] {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bytesMax {
            throw Problem.bodyTooLarge(bytesMax)
        }
        var body: [UInt8] = []
        for try await buffer in request.body {
            guard body.count + buffer.readableBytes <= bytesMax else { throw Problem.bodyTooLarge(bytesMax) }
            body.append(contentsOf: buffer.readableBytesView)
        }
        return body
    }
}

extension Problem {
    package static let contentTypeWrong = Problem(
        .unsupportedMediaType, name: "content-type", detail: "The body must be application/json.")
}
