import Glibc
import Synchronization

/// Buffers the spans of a process until they are exported to a collector.
///
/// The recorder is off until `start`; then nothing is recorded, and beginning a span costs one atomic load. Sampling is
/// decided at the root of a trace: a sampled `traceparent` is continued; an unsampled one is propagated but not
/// recorded.
package final class SpanRecorder: Sendable {
    /// The shared recorder of the process.
    package static let process = SpanRecorder()

    /// Maximum number of buffered spans; further spans are dropped and counted.
    package static let bufferedCountMax = 16_384

    private struct Buffer {
        var spans: [TraceSpan] = []
        var droppedCount = 0
    }

    private let buffer = Mutex(Buffer())
    /// 0: off. Otherwise the share of new traces to record in 2⁵⁶ths, plus one.
    private let share = Atomic<UInt64>(0)
    private let lastID: Atomic<UInt64>

    /// - Parameter seed: The start of the sequence of ids, which are unique in the process and, with a random seed,
    ///   across processes.
    package init(seed: UInt64 = .random(in: 0...UInt64.max)) { lastID = Atomic(seed) }

    /// Starts recording.
    ///
    /// - Parameter sample: The share of requests without a trace context that start a trace, from 0 to 1.
    package func start(sample: Double) {
        let most = Double(1 << 56 as UInt64)
        share.store(UInt64(max(0, min(sample, 1)) * most) + 1, ordering: .relaxed)
    }

    package var isOn: Bool { share.load(ordering: .relaxed) > 0 }

    /// Returns a new span id, never 0.
    package func nextID() -> UInt64 {
        let state = lastID.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        return max(1, SplitMix64.mixed(state))
    }

    /// Begins a child span of a recorded trace.
    ///
    /// - Returns: `nil` if the trace is not recorded.
    package func begin(_ parent: TraceContext?) -> OpenSpan? {
        guard let parent, parent.isSampled, isOn else { return nil }
        return OpenSpan(context: parent.child(nextID()), parentID: parent.spanID, start: Self.now())
    }

    /// Begins the span of a request, which may start a trace.
    package func beginRequest(_ parent: TraceContext?) -> OpenSpan? {
        guard parent == nil else { return begin(parent) }
        let share = share.load(ordering: .relaxed)
        guard share > 0 else { return nil }
        let traceLow = nextID()
        // The last seven bytes of a trace id are random. Source: W3C Trace Context Level 2, §3.2.2.3.
        guard traceLow & (1 << 56 - 1) < share - 1,
            let context = TraceContext(traceHigh: nextID(), traceLow: traceLow, spanID: nextID(), flags: 1)
        else { return nil }
        return OpenSpan(context: context, parentID: nil, start: Self.now())
    }

    /// Records a span that ends now.
    package func end(_ span: OpenSpan, _ work: TraceSpan.Work) {
        let whole = TraceSpan(
            context: span.context, parentID: span.parentID, start: span.start, end: max(span.start, Self.now()),
            work: work)
        buffer.withLock { buffer in
            if buffer.spans.count < Self.bufferedCountMax {
                buffer.spans.append(whole)
            } else {
                buffer.droppedCount += 1
            }
        }
    }

    /// Removes and returns the buffered spans, with the number dropped since the last call.
    package func take() -> (spans: [TraceSpan], droppedCount: Int) {
        buffer.withLock { buffer in
            defer { buffer = Buffer() }
            return (buffer.spans, buffer.droppedCount)
        }
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z by the wall clock.
    private static func now() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
