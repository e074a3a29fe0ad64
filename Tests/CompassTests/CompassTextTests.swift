import BackendProtocol
import Compass
import Essentials
import FoundationEssentials
import TestSupport
import Testing

@Suite(.ownThreads) struct CompassTextTests {
    /// Any text in a field of 254 bytes is returned unchanged, or refused with a reason and not saved.
    @Test(arguments: Seeds.random(1, for: "generated headlines"))
    func everyHeadlineIsStoredOrRefused(seed: UInt64) async throws {
        try await CompassFixture.run { fixture in
            let compass = fixture.compass()
            var random = SplitMix64(seed: seed)
            var (keptCount, refusedCount) = (0, 0)
            for _ in 0..<250 {
                let json = Data(GeneratedTexts.json(&random).utf8)
                // The gateway rejects U+0000 and invalid text.
                guard let text = try? JSONDecoder().decode(String.self, from: json), !text.utf8.contains(0) else {
                    continue
                }
                let session = try await compass.create(before: .never)
                do {
                    let values = [FieldValue("Headline", text), FieldValue("Severity", "3-Average")]
                    let id = try await session.commit(values, before: .never).id
                    let record = try #require(try await compass.record(id))
                    let found = try #require(record.fields.first { $0.name == "Headline" })
                    #expect(found.value.unicodeScalars.elementsEqual(text.unicodeScalars))
                    #expect(text.utf8.count <= 254)
                    keptCount += 1
                } catch BackendError.refused(let messages) {
                    #expect(!messages.isEmpty)
                    #expect(text.utf8.count > 254 || text.allSatisfy(\.isWhitespace))
                    refusedCount += 1
                }
            }
            #expect(keptCount > 50 && refusedCount > 0)
        }
    }
}
