import Essentials
import Foundation
import HTTP
import Model
import TestSupport

@testable import RealmGateway

/// Bytes that are images as far as anybody looks.
enum TestImage {
    static func make(_ type: ImageType = .png, _ text: String = "picture", count: Int = 0) -> [UInt8] {
        let start: [UInt8] =
            switch type {
            case .jpeg: [0xFF, 0xD8, 0xFF, 0xE0]
            case .png: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            case .webp: Array("RIFF".utf8) + [1, 0, 0, 0] + Array("WEBP".utf8)
            }
        let bytes = start + Array(text.utf8)
        return bytes + Array(repeating: 7, count: max(0, count - bytes.count))
    }
}

extension GatewayDevice {
    /// Sends a blob; what the header says of it is wrong on purpose.
    @discardableResult
    nonisolated func putBlob(_ id: UUID, _ bytes: [UInt8] = TestImage.make()) async throws -> Answer {
        var request = request("PUT", "/v1/blobs/\(id.text)")
        request.body = bytes
        request.headers[1].value = "text/html"
        return Answer(try await fixture.client.send(request))
    }

    /// - Parameter tag: What the device holds of it.
    nonisolated func getBlob(_ id: UUID, holding tag: String? = nil) async throws -> HTTP.Response {
        var request = request("GET", "/v1/blobs/\(id.text)")
        if let tag { request.headers.append(("If-None-Match", tag)) }
        return try await fixture.client.send(request)
    }

    nonisolated func seesBlob(_ id: UUID) async throws -> Bool {
        let response = try await getBlob(id)
        guard response.status != 200 else { return true }
        let unknown = Answer(try await getBlob(UUID()))
        let answer = Answer(response)
        guard answer.status == 404, answer.body == unknown.body else { throw Told(status: answer.status) }
        return false
    }

    /// A blob that may not be read is told from one that is not there.
    struct Told: Error { let status: Int }
}
