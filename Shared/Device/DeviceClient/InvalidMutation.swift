public import Essentials
public import Model

/// A mutation that is not queued: the server could not take the request it would be in, and what is behind it would
/// wait for ever; or it would refuse it for its size alone.
public struct InvalidMutation: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong with it.
    public enum Reason: Equatable, Sendable {
        /// The fields are not one JSON object that can be stored.
        case fieldsNotJSON(JSONProblem)
        /// The fields have so many bytes, and may have so many.
        case fieldsTooLarge(bytes: Int, bytesMax: Int)
    }

    /// The mutation as it was given.
    public let mutation: Mutation
    /// What is wrong with it.
    public let reason: Reason

    /// The object and the reason in one line.
    public var description: String {
        let what =
            switch reason {
            case .fieldsNotJSON(let problem): "\(problem)"
            case .fieldsTooLarge(let bytes, let bytesMax): "they have \(bytes) bytes, and may have \(bytesMax)"
            }
        return "the fields of \(mutation.kind.rawValue) \(mutation.id.text): \(what)"
    }

    /// Checks what the server could not read. What it reads, it decides.
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
