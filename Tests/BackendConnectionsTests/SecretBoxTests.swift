import Foundation
import Secrets
import Testing

@Suite struct SecretBoxTests {
    private static let old = key(1)
    private static let new = key(2)
    private static let place = "provider/1/client-secret"

    private static func key(_ byte: UInt8) -> String { Data(repeating: byte, count: 32).base64EncodedString() }

    @Test func theFirstKeySealsAndAllOpen() throws {
        let sealed = try SecretBox([Self.old]).seal("hush", at: Self.place)
        let both = try SecretBox([Self.new, Self.old])
        #expect(try both.openText(sealed, at: Self.place) == "hush")
        #expect(!both.isCurrent(sealed))
        let again = try both.seal("hush", at: Self.place)
        #expect(both.isCurrent(again))
        #expect(try SecretBox([Self.new]).openText(again, at: Self.place) == "hush")
        // While it is the last one it opens, and does not seal: what the first one seals all can open.
        let last = try SecretBox([Self.old, Self.new])
        #expect(last.isCurrent(sealed) && !last.isCurrent(again))
        #expect(try last.openText(again, at: Self.place) == "hush")
    }

    @Test func theSameSecretIsNeverSealedAlike() throws {
        let box = try SecretBox([Self.new])
        let (one, two) = (try box.seal("hush", at: Self.place), try box.seal("hush", at: Self.place))
        #expect(one != two)
        #expect(!String(decoding: one, as: UTF8.self).contains("hush"))
    }

    @Test func anUnknownKeyIsSaid() throws {
        let sealed = try SecretBox([Self.old]).seal("hush", at: Self.place)
        for keys in [[Self.new], []] {
            let box = try SecretBox(keys)
            #expect(!box.isCurrent(sealed))
            let failure = #expect(throws: SecretBox.Failure.self) { try box.open(sealed, at: Self.place) }
            #expect(failure?.description == "the key that a secret was sealed with is not configured")
        }
        #expect(throws: SecretBox.Failure.self) { try SecretBox([]).seal("hush", at: Self.place) }
    }

    @Test func whatWasChangedOrMovedDoesNotOpen() throws {
        let box = try SecretBox([Self.new])
        let sealed = try box.seal("hush", at: Self.place)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: SecretBox.Failure.self) { try box.open(changed, at: Self.place) }
        }
        for count in sealed.indices {
            #expect(throws: SecretBox.Failure.self) { try box.open(Array(sealed.prefix(count)), at: Self.place) }
        }
        #expect(throws: SecretBox.Failure.self) { try box.open(sealed, at: "provider/2/client-secret") }
    }

    @Test(arguments: ["", "short", Data(repeating: 1, count: 31).base64EncodedString(), "*" + key(1).dropFirst()])
    func aKeyThatIsNoneIsRefused(text: String) {
        #expect(throws: SecretBox.Failure.self) { try SecretBox([Self.new, text]) }
    }
}
