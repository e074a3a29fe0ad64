/// A problem of a schema or of a value, with the location where it is.
package struct SchemaProblem: Error, Equatable, Sendable, CustomStringConvertible {
    /// The location as a JSON Pointer (RFC 6901): `/photos/2`; empty for the outermost value.
    package let path: String
    /// The problem and what is allowed, without a subject: `must be a string`.
    package let text: String

    package init(_ path: String, _ text: String) { (self.path, self.text) = (path, text) }

    package var description: String { path.isEmpty ? "the value \(text)" : "\(path): \(text)" }

    /// Appends a name to a pointer.
    static func path(_ path: String, _ name: String) -> String {
        path + "/"
            + name.split(separator: "~", omittingEmptySubsequences: false).joined(separator: "~0")
            .split(separator: "/", omittingEmptySubsequences: false).joined(separator: "~1")
    }

    static func path(_ path: String, _ index: Int) -> String { "\(path)/\(index)" }
}
