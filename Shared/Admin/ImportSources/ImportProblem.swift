/// Why a line or a row is not taken, in a sentence.
package struct ImportProblem: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
