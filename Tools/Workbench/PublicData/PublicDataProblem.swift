/// The reason why a file of public data, or a line or row of it, cannot be read.
struct PublicDataProblem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
