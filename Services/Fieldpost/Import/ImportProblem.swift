/// The reason why a line is rejected, in a sentence.
struct ImportProblem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
