/// What could not be done with an environment, in one line for whoever asked.
package struct EnvironmentFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
