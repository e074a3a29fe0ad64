/// A part of a process that cannot run, in one line.
package struct ComponentError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
