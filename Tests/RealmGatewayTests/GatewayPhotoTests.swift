import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Photos with a camera's metadata.
@Suite(.ownThreads) struct GatewayPhotoTests {
    @Test(arguments: ImageType.allCases) func photosAreStoredAndReadWithoutMetadata(type: ImageType) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (id, photo) = (UUID(), ImageMetadataTests.photo(type, ImageMetadataTests.exif(6)))
            let added = try await ana.putBlob(id, photo)
            #expect(added.status == 201)
            let blob = try await ana.getBlob(id)
            #expect(blob.body == ImageMetadataTests.bare(type, 6))
            #expect(blob.headers["ETag"] == added.headers["ETag"])
            let stored = try fixture.withDatabase {
                try $0.run("SELECT bytes FROM blob.content WHERE id = \(id)")[0].decode(Bytea.self).bytes
            }
            #expect(stored == blob.body)
            // The device sends its original again, or the downloaded version.
            for bytes in [photo, blob.body] { #expect(try await ana.putBlob(id, bytes).status == 204) }
            #expect(try await ana.putBlob(id, TestImage.make(type, "another")).problem == "blob-taken")
        }
    }

    /// An earlier release stored photos with their metadata.
    @Test func photosOfAnEarlierReleaseAreReadWithoutMetadata() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (id, photo) = (UUID(), ImageMetadataTests.photo(.jpeg, ImageMetadataTests.exif(3)))
            let sent = try Blob(id, sent: photo)
            try await ana.putBlob(id, photo)
            try fixture.withDatabase {
                _ = try $0.run(
                    """
                    UPDATE blob.content SET bytes = \(Bytea(photo)), digest = \(Bytea(sent.sentDigest))
                    WHERE id = \(id)
                    """)
            }
            #expect(try await ana.getBlob(id).body == ImageMetadataTests.bare(.jpeg, 3))
            #expect(try await ana.putBlob(id, photo).status == 204)
            #expect(try await ana.putBlob(id, TestImage.make(.jpeg)).problem == "blob-taken")
        }
    }

    /// An earlier release stored damaged photos too: they are served up to the damage, or the problem gives the reason.
    @Test func damagedPhotosOfAnEarlierReleaseAreServedOrReported() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            try await ana.putBlob(id, TestImage.make(.jpeg))
            func store(_ bytes: [UInt8]) throws {
                try fixture.withDatabase {
                    _ = try $0.run("UPDATE blob.content SET bytes = \(Bytea(bytes)) WHERE id = \(id)")
                }
            }
            let photo = ImageMetadataTests.photo(.jpeg, ImageMetadataTests.exif(6))
            // Everything after the pixels is missing.
            let pixels = try #require(photo.firstRange(of: Array("picture".utf8)))
            try store(Array(photo[..<pixels.upperBound]))
            #expect(try await ana.getBlob(id).body == ImageMetadataTests.bare(.jpeg, 6))
            try store(Array(photo.prefix(100)))
            let response = GatewayResponse(try await ana.getBlob(id))
            #expect(response.status == 410 && response.problem == "image-unreadable")
        }
    }

    @Test(arguments: ["heic", "heix", "mif1", "avif"]) func photosOfPhonesAreRejectedWithAdvice(brand: String)
        async throws
    {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            let response = try await ana.putBlob(id, [0, 0, 0, 24] + Array("ftyp\(brand)\0\0\0\0mif1heic".utf8))
            #expect(response.status == 415 && response.problem == "image-heif")
            #expect(response.body.contains("Convert the image to JPEG, PNG or WebP"))
            #expect(try await ana.getBlob(id).status == 404)
        }
    }

    @Test(arguments: ImageType.allCases) func damagedPhotosAreRejected(type: ImageType) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            let response = try await ana.putBlob(id, Array(TestImage.make(type).prefix(20)))
            #expect(response.status == 422 && response.problem == "image-malformed")
            #expect(try await ana.getBlob(id).status == 404)
        }
    }
}
