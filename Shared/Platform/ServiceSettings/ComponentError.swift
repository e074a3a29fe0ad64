/// A one-line error of a component that cannot run.
package struct ComponentError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
