/// A failed operation on an environment, described in one line for the operator.
package struct EnvironmentFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
