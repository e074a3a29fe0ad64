import Essentials
import Foundation
import Testing

@Suite struct UUIDTextTests {
    @Test func idsRoundTripAsInFoundation() {
        var random = SplitMix64(seed: 1)
        for _ in 0..<1_000 {
            let id = random.id()
            #expect(id.text == id.uuidString.lowercased())
            #expect(UUID(ascii: id.text) == id)
            #expect(UUID(ascii: id.uuidString) == id)
            let ascii = Array(id.text.utf8)
            #expect(unsafe UUID(ascii: ascii.span.bytes) == id)
        }
    }

    @Test(arguments: [
        "", "0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4", "0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d5",
        "0b7f3f5e5c0a4f3e9d671c8f0a2b3c4d", "0b7f3f5e-5c0a-4f3e-9d671-c8f0a2b3c4d",
        "0b7f3f5e_5c0a_4f3e_9d67_1c8f0a2b3c4d", "gb7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d",
        " b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d", "+b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d",
        "{b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4}", "0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c٤",
    ])
    func invalidIDIsRejected(text: String) { #expect(UUID(ascii: text) == nil) }

    @Test func objectFieldsAreReadAsIDs() throws {
        let id = try #require(UUID(ascii: "0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d"))
        let json = """
            {"small":"0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d","capital":"0B7F3F5E-5C0A-4F3E-9D67-1C8F0A2B3C4D",\
            "escaped":"\\u0030b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c4d","text":"a task","null":null,\
            "number":12345678901234567890123456789012345678,\
            "array":["0b7f3f5e-5c0a-4f3e-9d67-1c8f0a2b3c"]}
            """
        let object = try JSONObject(Array(json.utf8))
        for key in ["small", "capital", "escaped"] { #expect(object.id(of: key) == id, "\(key)") }
        for key in ["text", "null", "number", "array", "absent"] { #expect(object.id(of: key) == nil, "\(key)") }
    }
}
