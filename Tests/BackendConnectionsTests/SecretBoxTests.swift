import Foundation
import Secrets
import Testing

@Suite struct SecretBoxTests {
    private static let old = key(1)
    private static let new = key(2)
    private static let context = "provider/1/client-secret"

    private static func key(_ byte: UInt8) -> String { Data(repeating: byte, count: 32).base64EncodedString() }

    @Test func firstKeySealsAndAllKeysOpen() throws {
        let sealed = try SecretBox([Self.old]).seal("hush", at: Self.context)
        let both = try SecretBox([Self.new, Self.old])
        #expect(try both.openText(sealed, at: Self.context) == "hush")
        #expect(!both.isCurrent(sealed))
        let resealed = try both.seal("hush", at: Self.context)
        #expect(both.isCurrent(resealed))
        #expect(try SecretBox([Self.new]).openText(resealed, at: Self.context) == "hush")
        // The last key opens but does not seal.
        let last = try SecretBox([Self.old, Self.new])
        #expect(last.isCurrent(sealed) && !last.isCurrent(resealed))
        #expect(try last.openText(resealed, at: Self.context) == "hush")
    }

    @Test func sealingIsNotDeterministic() throws {
        let box = try SecretBox([Self.new])
        let (one, two) = (try box.seal("hush", at: Self.context), try box.seal("hush", at: Self.context))
        #expect(one != two)
        #expect(!String(decoding: one, as: UTF8.self).contains("hush"))
    }

    @Test func unknownKeyIsReported() throws {
        let sealed = try SecretBox([Self.old]).seal("hush", at: Self.context)
        for keys in [[Self.new], []] {
            let box = try SecretBox(keys)
            #expect(!box.isCurrent(sealed))
            let failure = #expect(throws: SecretBox.Failure.self) { try box.open(sealed, at: Self.context) }
            #expect(failure?.description == "a secret was sealed with a key that is not configured")
        }
        #expect(throws: SecretBox.Failure.self) { try SecretBox([]).seal("hush", at: Self.context) }
    }

    @Test func alteredOrMovedSecretsDoNotOpen() throws {
        let box = try SecretBox([Self.new])
        let sealed = try box.seal("hush", at: Self.context)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: SecretBox.Failure.self) { try box.open(changed, at: Self.context) }
        }
        for count in sealed.indices {
            #expect(throws: SecretBox.Failure.self) { try box.open(Array(sealed.prefix(count)), at: Self.context) }
        }
        #expect(throws: SecretBox.Failure.self) { try box.open(sealed, at: "provider/2/client-secret") }
    }

    @Test(arguments: ["", "short", Data(repeating: 1, count: 31).base64EncodedString(), "*" + key(1).dropFirst()])
    func invalidKeysAreRejected(text: String) {
        #expect(throws: SecretBox.Failure.self) { try SecretBox([Self.new, text]) }
    }
}
