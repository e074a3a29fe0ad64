import HTTPTypes
package import Hummingbird
import NIOCore

/// A request's body of JSON.
package enum JSONBody {
    /// - Throws: `Problem` 413 or 415.
    @concurrent package static func read(_ request: Request, bytesMax: Int) async throws -> [UInt8] {
        let type = request.headers[.contentType]?.split(separator: ";").first?.lowercased() ?? ""
        guard type.split(separator: " ").first == "application/json" else { throw Problem.contentTypeWrong }
        return try await BoundedBytes.read(request, bytesMax: bytesMax)
    }
}

/// A request's body of any bytes.
package enum BoundedBytes {
    /// - Throws: `Problem` 413, as soon as it is known to be longer.
    @concurrent package static func read(_ request: Request, bytesMax: Int) async throws -> [UInt8] {
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bytesMax {
            throw Problem.bodyTooLarge(bytesMax)
        }
        var body: [UInt8] = []
        for try await part in request.body {
            guard body.count + part.readableBytes <= bytesMax else { throw Problem.bodyTooLarge(bytesMax) }
            body.append(contentsOf: part.readableBytesView)
        }
        return body
    }
}

extension Problem {
    package static let contentTypeWrong = Problem(
        .unsupportedMediaType, name: "content-type", detail: "The body must be application/json.")
}
