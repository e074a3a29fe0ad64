import Essentials
import Postgres

/// The trace contexts of a batch's writes, as the change log gets them.
///
/// Where they differ they go as one row of bytes, each at a place of its own: an element of an array of texts, and a
/// row of a join, cost time that grows with the batch.
struct Traceparents {
    private enum Form {
        case one(String?)
        case each(Bytea)
    }

    private let form: Form

    /// - Parameter traces: In the order of the writes.
    init(_ traces: [TraceContext?]) {
        guard let first = traces.first, traces.contains(where: { $0 != first }) else {
            form = .one(traces.first.flatMap { $0?.text })
            return
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(traces.count * TraceContext.textLength)
        for trace in traces {
            if let trace { trace.appendText(to: &bytes) } else { bytes += Self.none }
        }
        form = .each(Bytea(bytes))
    }

    private static let none = [UInt8](repeating: UInt8(ascii: " "), count: TraceContext.textLength)

    /// That of a change, where `position - p` is the number of its write, counted from 1.
    var expression: Statement {
        switch form {
        case .one(let text): return "\(text)"
        case .each(let bytes):
            let length = Int32(TraceContext.textLength)
            return """
                nullif(encode(substr(\(bytes), (position - p - 1)::int * \(length) + 1, \(length)), 'escape'), \
                repeat(' ', \(length)))
                """
        }
    }
}
