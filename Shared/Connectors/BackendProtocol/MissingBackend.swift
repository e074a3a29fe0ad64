/// A back end that cannot be called because of how this process, or the environment, is set up.
package struct MissingBackend: Error, Equatable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
