/// A back end that cannot be called because of the configuration of the process or the environment.
package struct MissingBackend: Error, Equatable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
