import Essentials

/// An invalid field of an object, described by a sentence that names the field and the allowed values.
package struct FieldObjection: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// The outermost field that the sentence names; `nil` if it does not begin with a name or a JSON Pointer.
    package var field: String? {
        if description.first == "/" { return String(description.dropFirst().prefix { $0 != "/" && $0 != ":" }) }
        guard description.first == "'" else { return nil }
        return String(description.dropFirst().prefix { $0 != "'" && $0 != "." && $0 != "[" })
    }
}

/// An invalid value, with the path of its containers.
struct FieldProblem: Error {
    /// The path from the outermost to the innermost name: `place`, `latitude`; list elements as `[3]`.
    var path: [String]
    /// The text after the path: `must be a number`.
    let text: String

    init(_ text: String, path: [String] = []) {
        self.text = text
        self.path = path
    }

    init(mustBe needed: String) { self.init("must be " + needed) }

    func inside(_ name: String) -> FieldProblem { FieldProblem(text, path: [name.excerpt] + path) }

    var objection: FieldObjection {
        guard let first = path.first else { return FieldObjection("the object " + text) }
        let path = path.dropFirst().reduce(first) { $0 + ($1.first == "[" ? "" : ".") + $1 }
        return FieldObjection("'\(path)' \(text)")
    }
}
