public import Essentials
public import Model

/// A mutation that is not queued, because the server could not read its request, which would block the queue, or would
/// reject it because of its size.
public struct InvalidMutation: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of problem.
    public enum Reason: Equatable, Sendable {
        /// The fields are not one JSON object that can be stored.
        case fieldsNotJSON(JSONError)
        /// The size of the fields exceeds the maximum.
        case fieldsTooLarge(bytes: Int, bytesMax: Int)
    }

    /// The mutation as passed by the caller.
    public let mutation: Mutation
    /// The kind of problem.
    public let reason: Reason

    /// The object and the reason in one line.
    public var description: String {
        let what =
            switch reason {
            case .fieldsNotJSON(let problem): "\(problem)"
            case .fieldsTooLarge(let bytes, let bytesMax): "they have \(bytes) bytes; at most \(bytesMax) are allowed"
            }
        return "the fields of \(mutation.kind.rawValue) \(mutation.id.text): \(what)"
    }

    /// Rejects mutations that the server could not read. All other rules are the server's.
    static func check(_ mutation: Mutation) throws(InvalidMutation) {
        guard let fields = mutation.fields else { return }
        let bytesMax = mutation.kind.fieldsBytesMax
        guard fields.count <= bytesMax else {
            throw InvalidMutation(
                mutation: mutation, reason: .fieldsTooLarge(bytes: fields.count, bytesMax: bytesMax))
        }
        do { _ = try JSONObject(fields) } catch {
            throw InvalidMutation(mutation: mutation, reason: .fieldsNotJSON(error))
        }
    }
}
