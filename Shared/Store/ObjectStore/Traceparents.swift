import Essentials
import Postgres

/// The trace contexts of a batch's writes, for the change log.
///
/// If they differ, they are sent as one `bytea` with fixed-length slots: arrays of texts and joins cost time
/// proportional to the batch.
struct Traceparents {
    private enum Form {
        case one(String?)
        case each(Bytea)
    }

    private let form: Form

    /// - Parameter traces: The trace contexts in the order of the writes.
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

    /// The SQL expression for a change's trace context, where `position - p` is the number of its write, from 1.
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
