import Foundation
import Model
import NIOCore
import TestSupport
import Testing

@testable import RealmGateway

/// The lines of the PowerSync protocol, without a connection.
@Suite(.ownThreads) struct BucketLinesTests {
    private static let own = RealmPath("/users/ana@example.com")

    private func request(_ text: String = "{}") throws -> BucketRequest {
        try BucketRequest(Array(text.utf8), subscriptionCountMax: 10)
    }

    private func texts(_ lines: [ByteBuffer]) -> [String] { lines.map { String(buffer: $0) } }

    /// A partial state must not be displayed, also if it stays partial for long.
    @Test func keepaliveCompletesNoPartialState() throws {
        let own = try #require(Self.own)
        let lines = BucketLines(try request(), generation: 1)
        lines.opened(own)
        _ = lines.announcement(at: 5, defaults: [own])
        #expect(texts(lines.keepalive(expiresIn: 100, at: 90_000)) == ["{\"token_expires_in\":100}\n"])
        #expect(lines.checkpoint(at: 5).count == 1)
        #expect(texts(lines.keepalive(expiresIn: 90, at: 6)) == ["{\"token_expires_in\":90}\n"])
        // An idle device that is far behind gets its new position.
        let moved = texts(lines.keepalive(expiresIn: 80, at: 90_000))
        #expect(moved.count == 3 && moved[1] == "{\"checkpoint_complete\":{\"last_op_id\":\"90000\"}}\n")
        lines.addedData()
        #expect(lines.keepalive(expiresIn: 70, at: 900_000).count == 1)
    }

    /// Without it, a stream that is never idle would end with its token.
    @Test func busyStreamAnnouncesTheExpiry() throws {
        var busy = SessionLines(SyncRequest(try request()), generation: 1, expiryInterval: .zero)
        busy.announceExpiry(in: 100)
        #expect(texts(busy.take()) == ["{\"token_expires_in\":100}\n"])
        var early = SessionLines(SyncRequest(try request()), generation: 1, expiryInterval: .seconds(3_600))
        early.announceExpiry(in: 100)
        #expect(early.take().isEmpty)
        let device = try SyncRequest(Array("{}".utf8), realmCountMax: 10)
        var other = SessionLines(device, generation: 1, expiryInterval: .zero)
        other.announceExpiry(in: 100)
        #expect(other.take().isEmpty)
    }
}
