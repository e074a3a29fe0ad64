/// The reason why a line or a row is rejected, in a sentence.
package struct ImportProblem: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
