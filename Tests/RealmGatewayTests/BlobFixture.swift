import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport

@testable import RealmGateway

/// Images by their structure, without metadata; their pixels are the bytes of a text.
enum TestImage {
    /// - Parameter count: The image's length, unless the text needs more.
    static func make(_ type: ImageType = .png, _ text: String = "picture", count: Int = 0) -> [UInt8] {
        func image(_ pixels: [UInt8]) -> [UInt8] {
            switch type {
            case .jpeg: jpeg(pixels: pixels)
            case .png: png(pixels: pixels)
            case .webp: webp([("VP8 ", pixels)])
            }
        }
        let (pixels, bare) = (Array(text.utf8), image([]).count)
        return image(pixels + Array(repeating: 7, count: max(0, count - bare - pixels.count)))
    }

    /// - Parameters:
    ///   - head: Segments before the frame.
    ///   - middle: Segments between the frame and the scan.
    static func jpeg(_ head: [UInt8] = [], middle: [UInt8] = [], pixels: [UInt8] = Array("picture".utf8)) -> [UInt8] {
        joined(
            [0xFF, 0xD8], head, segment(0xC0, [8, 0, 1, 0, 1, 1, 1, 0x11, 0]), middle,
            segment(0xDA, [1, 1, 0, 0, 63, 0]), pixels, [0xFF, 0xD9])
    }

    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length = content.count + 2
        return joined([0xFF, marker, UInt8(length >> 8), UInt8(length & 255)], content)
    }

    /// - Parameters:
    ///   - head: Chunks before the pixels.
    ///   - tail: Chunks after the pixels.
    static func png(
        _ head: [UInt8] = [], tail: [UInt8] = [], pixels: [UInt8] = Array("picture".utf8)
    ) -> [UInt8] {
        joined(
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A],
            PNGImage.chunk("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]), head, PNGImage.chunk("IDAT", pixels),
            tail, PNGImage.chunk("IEND", []))
    }

    static func webp(_ chunks: [(type: String, content: [UInt8])]) -> [UInt8] {
        WebPImage.file(chunks.flatMap { WebPImage.made(Array($0.type.utf8)[...], $0.content[...]) })
    }

    static func joined(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap(\.self) }
}

extension GatewayDevice {
    /// Uploads a blob, with a wrong content type on purpose.
    @discardableResult
    nonisolated func putBlob(_ id: UUID, _ bytes: [UInt8] = TestImage.make()) async throws -> GatewayResponse {
        var request = request("PUT", "/v1/blobs/\(id.text)")
        request.body = bytes
        request.headers[1].value = "text/html"
        return GatewayResponse(try await fixture.client.send(request))
    }

    /// - Parameter tag: What the device holds of it.
    nonisolated func getBlob(_ id: UUID, holding tag: String? = nil) async throws -> HTTPClient.Response {
        var request = request("GET", "/v1/blobs/\(id.text)")
        if let tag { request.headers.append(("If-None-Match", tag)) }
        return try await fixture.client.send(request)
    }

    nonisolated func seesBlob(_ id: UUID) async throws -> Bool {
        let response = try await getBlob(id)
        guard response.status != 200 else { return true }
        let (forbidden, missing) = (GatewayResponse(response), GatewayResponse(try await getBlob(UUID())))
        guard forbidden.status == 404, forbidden.body == missing.body else {
            throw UnexpectedStatus(status: forbidden.status)
        }
        return false
    }

    /// The response to a forbidden blob differs from that to a missing one.
    struct UnexpectedStatus: Error { let status: Int }
}
