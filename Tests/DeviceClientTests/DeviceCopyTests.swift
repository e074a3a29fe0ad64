import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DeviceClient

@Suite(.ownThreads) struct SyncLineTests {
    @Test func everyLineTypeIsDecoded() throws {
        let path = try #require(RealmPath("/users/ana@example.com"))
        let id = UUID()
        #expect(try line(#"{"open":{"realm":"/users/ana@example.com"}}"#) == .open(path, isReset: false))
        #expect(try line(#"{"open":{"realm":"/users/ana@example.com","reset":true}}"#) == .open(path, isReset: true))
        #expect(try line(#"{"closed":{"realm":"/users/ana@example.com"}}"#) == .closed(path))
        #expect(
            try line(#"{"keepalive":{"expiresIn":57,"position":9,"cursor":"1:9:9"}}"#)
                == .keepalive(expiresInSeconds: 57, position: 9, cursor: "1:9:9", cursors: [:]))
        #expect(
            try line(
                #"{"checkpoint":{"position":9,"cursor":"1:9:9","cursors":{"/users/ana@example.com":"1:9:9"}}}"#)
                == .checkpoint(position: 9, cursor: "1:9:9", cursors: [path: "1:9:9"]))
        let objects = try line(
            """
            {"objects":{"realm":"\(path)","cursor":"1:9:5","list":[\
            {"kind":"TimeEntry","id":"\(id.text)","position":7,"fields":{"text": "a"}},\
            {"kind":"User","id":"\(id.text)","position":8,"deleted":true},\
            {"kind":"Blueprint","id":"\(id.text)","position":9,"fields":{}}]}}
            """)
        #expect(
            objects
                == .objects(
                    path, cursor: "1:9:5",
                    [
                        SyncLine.Change(
                            id: ObjectID(kind: .timeEntry, id: id),
                            object: DeviceObject(position: 7, fields: Array(#"{"text": "a"}"#.utf8))),
                        SyncLine.Change(id: ObjectID(kind: .user, id: id), object: nil),
                        SyncLine.Change(
                            id: ObjectID(kind: try #require(Kind(named: "Blueprint")), id: id),
                            object: DeviceObject(position: 9, fields: Array("{}".utf8))),
                    ]))
    }

    @Test func unsupportedLineIsSkipped() throws {
        #expect(try line(#"{"weather":{"realm":"/users/ana@example.com"}}"#) == nil)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"open":{}}"#, #"{"objects":{"realm":"/users/a","list":[{"kind":"User"}]}}"#,
        #"{"objects":{"realm":"/users/a","list":[{"kind":"User","id":"6f2d","position":1,"fields":{}}]}}"#,
        #"{"checkpoint":{"position":"x"}}"#, #"{"open":{"realm":"/users/a"}"#,
    ])
    func invalidLineThrows(text: String) {
        #expect(throws: (any Error).self) { try line(text) }
    }

    private func line(_ text: String) throws -> SyncLine? { try SyncLine.read(Array(text.utf8)) }
}

@Suite(.ownThreads) struct DeviceCopyTests {
    private let path: RealmPath
    private let entry = ObjectID(kind: .timeEntry, id: UUID())
    private let other = ObjectID(kind: .timeEntry, id: UUID())

    init() throws { path = try RealmPath.user("ana@example.com") }

    @Test func onlyCheckpointsAreShown() {
        var copy = DeviceCopy()
        #expect(copy.apply(.open(path, isReset: true)) == [])
        #expect(copy.apply(.objects(path, cursor: "c1", [change(entry, 3)])) == [])
        #expect(copy[path, entry] == nil, "the object is staged, but the realm is incomplete")
        #expect(copy.apply(.checkpoint(position: 5, cursor: nil, cursors: [path: "c2"])) == addresses(entry))
        #expect(copy[path, entry] == object(3))
        #expect(copy.position == 5)
        #expect(copy.cursors == [path: "c2"])
        #expect(copy.apply(.checkpoint(position: 6, cursor: nil, cursors: [path: "c3"])) == [], "no changes")
    }

    @Test func tombstoneRemovesItsObject() {
        var copy = filled()
        _ = copy.apply(.objects(path, cursor: nil, [SyncLine.Change(id: entry, object: nil)]))
        #expect(copy[path, entry] == object(3))
        #expect(copy.apply(.checkpoint(position: 8, cursor: nil, cursors: [:])) == addresses(entry))
        #expect(copy.contents[path] == [other: object(4)])
    }

    @Test func resetDiscardsContentAtTheCheckpoint() {
        var copy = filled()
        _ = copy.apply(.open(path, isReset: true))
        #expect(copy.cursors == [path: nil], "the copy cannot be continued, but the realm is named")
        _ = copy.apply(.objects(path, cursor: "d1", [change(other, 9)]))
        #expect(copy[path, entry] == object(3), "the last consistent checkpoint is shown meanwhile")
        #expect(copy.apply(.checkpoint(position: 9, cursor: nil, cursors: [path: "d2"])) == addresses(entry, other))
        #expect(copy.contents[path] == [other: object(9)])
    }

    @Test func stagedChangesSurviveAnInterruptedStream() {
        var copy = DeviceCopy()
        _ = copy.apply(.open(path, isReset: true))
        _ = copy.apply(.objects(path, cursor: "page 1", [change(entry, 3)]))
        #expect(copy.cursors == [path: "page 1"], "the download resumes after the first page")
        _ = copy.apply(.open(path, isReset: false))
        _ = copy.apply(.objects(path, cursor: "page 2", [change(other, 4)]))
        _ = copy.apply(.checkpoint(position: 5, cursor: nil, cursors: [path: "whole"]))
        #expect(copy.contents[path] == [entry: object(3), other: object(4)])
    }

    @Test func keepaliveAdvancesTheCursor() {
        var copy = filled()
        _ = copy.apply(.keepalive(expiresInSeconds: 9, position: 6, cursor: "c3", cursors: [:]))
        #expect(copy.cursors == [path: "c3"])
        #expect(copy.position == 6, "a keepalive counts as a checkpoint")
        _ = copy.apply(.objects(path, cursor: "c4", [change(entry, 6)]))
        _ = copy.apply(.keepalive(expiresInSeconds: 8, position: 9, cursor: "c9", cursors: [:]))
        #expect(copy.cursors == [path: "c4"], "the cursor does not pass staged changes")
        #expect(copy.position == 6)
    }

    @Test func closedRealmIsRemovedImmediately() {
        var copy = filled()
        #expect(copy.apply(.closed(path)) == addresses(entry, other))
        #expect(copy.contents == [:])
        #expect(copy.cursors == [:])
    }

    @Test func unopenedRealmKeepsItsCursor() {
        var copy = filled()
        _ = copy.beginStream()
        _ = copy.apply(.open(.common, isReset: true))
        _ = copy.apply(.checkpoint(position: 9, cursor: "c9", cursors: [:]))
        #expect(copy.cursors == [path: "c2", .common: "c9"])
    }

    /// After an update of the app, objects that an older version skipped arrive with the realms that may contain them.
    @Test func newKindResetsItsRealms() throws {
        var copy = filled()
        _ = copy.apply(.open(.common, isReset: true))
        _ = copy.apply(.checkpoint(position: 6, cursor: "c6", cursors: [:]))
        let stored = try JSONEncoder().encode(copy)
        #expect(try JSONDecoder().decode(DeviceCopy.self, from: stored) == copy)
        let text = String(decoding: stored, as: UTF8.self)
        let known = Kind.allCases.map(\.rawValue).joined(separator: #"",""#)
        let older = text.replacing(#""kinds":["*"]"#, with: #""kinds":["\#(known)"]"#)
        #expect(older != text)
        copy = try JSONDecoder().decode(DeviceCopy.self, from: Data(older.utf8))
        #expect(copy.cursors == [path: nil, .common: nil], "both may have kinds that an environment declares")
        #expect(copy.contents[path]?.count == 2, "the old content is shown until the next checkpoint")
        let again = try JSONDecoder().decode(DeviceCopy.self, from: try JSONEncoder().encode(copy))
        #expect(again == copy)
    }

    // MARK: More realms than a request can name

    @Test func unnamedRealmIsSentCompletely() {
        var copy = filled()
        _ = copy.apply(.open(.common, isReset: true))
        _ = copy.apply(.checkpoint(position: 6, cursor: "c6", cursors: [:]))
        #expect(copy.beginStream(realmCountMax: 1) == [path: "c6"], "the largest realm is not sent again")
        _ = copy.apply(.open(path, isReset: false))
        _ = copy.apply(.open(.common, isReset: true))
        _ = copy.apply(.checkpoint(position: 7, cursor: "c7", cursors: [:]))
        #expect(copy.cursors == [path: "c7", .common: "c7"])
    }

    @Test func unnamedUnopenedRealmIsRemoved() {
        var copy = filled()
        _ = copy.apply(.open(.common, isReset: true))
        let teams = (1...3).map { _ in change(ObjectID(kind: .team, id: UUID()), 6) }
        _ = copy.apply(.objects(.common, cursor: nil, teams))
        _ = copy.apply(.checkpoint(position: 6, cursor: "c6", cursors: [:]))
        #expect(copy.beginStream(realmCountMax: 1) == [.common: "c6"])
        _ = copy.apply(.open(.common, isReset: false))
        #expect(copy.contents[path]?.count == 2)
        #expect(copy.apply(.checkpoint(position: 7, cursor: "c7", cursors: [:])) == addresses(entry, other))
        #expect(copy.cursors == [.common: "c7"])
    }

    /// An unrequested realm is shown until the next checkpoint, and not named.
    @Test func unrequestedRealmsAreRemoved() throws {
        var device = DeviceState(clientID: UUID())
        let team = RealmPath.team(UUID())
        for realm in [path, .common] {
            _ = device.take(.open(realm, isReset: true))
            _ = device.take(.objects(realm, cursor: "c1", [change(entry, 3)]))
        }
        _ = device.take(.checkpoint(position: 5, cursor: "c2", cursors: [:]))
        let body = device.syncRequest(isLive: true, only: [team, path])
        let expected = #"{"live":true,"only":["\#(team)","\#(path)"],"realms":{"\#(path)":"c2"}}"#
        #expect(String(decoding: body, as: UTF8.self) == expected)
        _ = device.take(.open(path, isReset: false))
        _ = device.take(.closed(team))
        #expect(device.content(of: .common).count == 1)
        let update = device.take(.checkpoint(position: 6, cursor: "c3", cursors: [:]))
        #expect(update.changed == [ObjectAddress(.common, entry)] && device.copy.cursors == [path: "c3"])
        // Requested again, it is sent completely.
        let again = String(decoding: device.syncRequest(isLive: false), as: UTF8.self)
        #expect(again == #"{"live":false,"realms":{"\#(path)":"c3"}}"#)
    }

    @Test func interruptedDownloadIsNamedFirst() {
        var copy = filled()
        _ = copy.apply(.open(path, isReset: true))
        _ = copy.apply(.open(.common, isReset: true))
        _ = copy.apply(.objects(.common, cursor: "d1", [change(entry, 6)]))
        #expect(copy.beginStream(realmCountMax: 1) == [.common: "d1"])
    }

    private func addresses(_ objects: ObjectID...) -> Set<ObjectAddress> {
        Set(objects.map { ObjectAddress(path, $0) })
    }

    private func filled() -> DeviceCopy {
        var copy = DeviceCopy()
        _ = copy.apply(.open(path, isReset: true))
        _ = copy.apply(.objects(path, cursor: "c1", [change(entry, 3), change(other, 4)]))
        _ = copy.apply(.checkpoint(position: 5, cursor: nil, cursors: [path: "c2"]))
        return copy
    }

    private func object(_ position: Int64) -> DeviceObject {
        DeviceObject(position: position, fields: Array(#"{"status":"draft"}"#.utf8))
    }

    private func change(_ id: ObjectID, _ position: Int64) -> SyncLine.Change {
        SyncLine.Change(id: id, object: object(position))
    }
}
