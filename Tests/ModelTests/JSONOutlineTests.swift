import Essentials
import Testing

@Suite struct JSONOutlineTests {
    private func members(_ text: String, countMax: Int = 3) -> [String]? {
        let bytes = Array(text.utf8)
        return JSONOutline.members(of: bytes, in: 0..<bytes.count, countMax: countMax)?.map { member in
            "\(String(decoding: member.key, as: UTF8.self))=\(String(decoding: bytes[member.value], as: UTF8.self))"
        }
    }

    private func elements(_ text: String, countMax: Int = 3) -> [String]? {
        let bytes = Array(text.utf8)
        return JSONOutline.elements(of: bytes, in: 0..<bytes.count, countMax: countMax)?.map { range in
            String(decoding: bytes[range], as: UTF8.self)
        }
    }

    @Test func valuesAreSeparatedByQuotesAndBrackets() {
        let object = #" { "a" : 1, "b":{"c":["}",2]} ,"d\"":"x,y"} "#
        #expect(members(object) == ["a=1", #"b={"c":["}",2]}"#, #"d\"="x,y""#])
        #expect(elements(#"[1, [2,{"a":"]"}] ,"\\"]"#) == ["1", #"[2,{"a":"]"}]"#, #""\\""#])
        #expect(members("{}") == [] && elements(" [ ] ") == [])
    }

    @Test func invalidValuesAreNotRejected() {
        #expect(members(#"{"a":tru,"b":{"c" 1}}"#) == ["a=tru", #"b={"c" 1}"#])
        #expect(elements(#"["\u0000",1e999]"#) == [#""\u0000""#, "1e999"])
    }

    @Test(arguments: ["", "[", "[1", "[1,]", "[1]x", "[1 2]", #"["a]"#, "[[1]", "{}", #"{"a":1}"#, "1"])
    func otherTextIsNoArray(text: String) {
        #expect(elements(text) == nil)
    }

    @Test(arguments: ["", "{", #"{"a":1"#, #"{"a":1,}"#, #"{"a":1}x"#, #"{"a" 1}"#, #"{"a":}"#, "{a:1}", "[]", #""a""#])
    func otherTextIsNoObject(text: String) {
        #expect(members(text) == nil)
    }

    @Test func countIsLimited() {
        #expect(elements("[1,2,3]")?.count == 3)
        #expect(elements("[1,2,3,4]") == nil)
        #expect(members(#"{"a":1,"b":2}"#, countMax: 1) == nil)
    }
}
