/// SQL text with its parameters. `"… WHERE id = \(id)"` becomes `… WHERE id = $1`, and the value is sent separately in
/// binary form, so that SQL injection is impossible.
package struct Statement: Sendable, ExpressibleByStringInterpolation {
    /// The text sent to PostgreSQL. Equal texts share one prepared statement.
    package let text: String
    let parameters: [Parameter]

    struct Parameter: Sendable {
        let typeID: UInt32
        let bytes: [UInt8]?
    }

    package init(stringLiteral value: String) {
        text = value
        parameters = []
    }

    package init(stringInterpolation: Interpolation) {
        text = stringInterpolation.text
        parameters = stringInterpolation.parameters
    }

    /// Commits the transaction asynchronously: its changes reach the disk later. A crash of the server may undo it, but
    /// not if a later synchronous commit has succeeded. For changes that the process repeats.
    package static let asynchronousCommit: Statement = "SELECT set_config('synchronous_commit', 'off', true)"

    package struct Interpolation: StringInterpolationProtocol {
        var text = ""
        var parameters: [Parameter] = []

        package init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + interpolationCount * 3)
            parameters.reserveCapacity(interpolationCount)
        }

        package mutating func appendLiteral(_ literal: String) { text += literal }

        package mutating func appendInterpolation<Value: PostgresValue>(_ value: Value) {
            var bytes: [UInt8] = []
            value.encode(into: &bytes)
            append(Parameter(typeID: Value.typeID, bytes: bytes))
        }

        package mutating func appendInterpolation<Value: PostgresValue>(_ value: Value?) {
            if let value { return appendInterpolation(value) }
            append(Parameter(typeID: Value.typeID, bytes: nil))
        }

        package mutating func appendInterpolation(_ array: BinaryArray) {
            append(Parameter(typeID: array.arrayTypeID, bytes: array.finish()))
        }

        /// Inserts SQL text, which `StaticString` restricts to constants of this program.
        package mutating func appendInterpolation(sql: StaticString) { text += sql.description }

        /// Inserts another statement with its parameters.
        package mutating func appendInterpolation(_ nested: Statement) {
            var rest = nested.text[...]
            while let mark = rest.firstIndex(of: "$") {
                text += rest[..<mark]
                rest = rest[mark...].dropFirst()
                let digits = rest.prefix { $0.isWholeNumber }
                rest = rest[digits.endIndex...]
                // Keep a dollar sign without a number.
                text += "$" + (Int(digits).map { String($0 + parameters.count) } ?? "")
            }
            text += rest
            parameters += nested.parameters
        }

        private mutating func append(_ parameter: Parameter) {
            parameters.append(parameter)
            text += "$\(parameters.count)"
        }
    }
}
