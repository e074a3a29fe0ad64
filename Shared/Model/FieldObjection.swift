import Essentials

/// A problem of the fields of an object, as a sentence that names the field and what is allowed.
package struct FieldObjection: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }

    /// The field that the sentence is about, without what is inside of it; `nil` if it begins with no name.
    package var field: String? {
        guard description.first == "'" else { return nil }
        return String(description.dropFirst().prefix { $0 != "'" && $0 != "." && $0 != "[" })
    }
}

/// A problem of a value, with the path of the containers that it is in.
struct FieldProblem: Error {
    /// From the outermost to the innermost: `place`, `latitude`; an element of a list as `[3]`.
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
