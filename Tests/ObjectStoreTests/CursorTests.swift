import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

/// Literal cursors as devices and integrations store them, some since earlier releases.
@Suite(.ownThreads) struct CursorTests {
    private static let id = UUID(uuidString: "0af76519-16cd-43dd-8448-eb211c80319c")

    static let whole = "1:812:812"
    static let realmScan = "2:812:0:TimeEntry:0af76519-16cd-43dd-8448-eb211c80319c"
    static let environment = "3:812:812:f839a6b4e42e96af"
    static let environmentScan = "3:812:700:f839a6b4e42e96af:17:User:0af76519-16cd-43dd-8448-eb211c80319c"

    @Test func cursorsOfEarlierReleasesAreParsed() throws {
        let id = try #require(Self.id)
        let kinds = Cursor.digest(of: [.user, .timeEntry])
        let cursors: [(String, Cursor)] = [
            (Self.whole, Cursor(generation: 1, start: 812, position: 812)),
            (Self.realmScan, Cursor(generation: 2, start: 812, position: 0, key: .init(kind: .timeEntry, id: id))),
            (Self.environment, Cursor(generation: 3, start: 812, position: 812, kinds: kinds)),
            (
                Self.environmentScan,
                Cursor(
                    generation: 3, start: 812, position: 700, kinds: kinds,
                    key: .init(realm: 17, kind: .user, id: id))
            ),
        ]
        for (text, cursor) in cursors {
            #expect(Cursor(text) == cursor)
            #expect(cursor.description == text)
        }
    }

    @Test(arguments: ["", "1:812", "0:1:1", "1:2:3", "1:812:812:Nothing:\(UUID())", "1:812:812:zz:1:User:x"])
    func invalidCursorIsRejected(text: String) { #expect(Cursor(text) == nil) }
}
