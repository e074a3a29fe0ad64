import Glibc
import Synchronization

/// Gathers the spans of a process until they are sent to a collector.
///
/// While it is off, which it is until `start`, nothing is recorded, and beginning a span costs one atomic load. Which
/// traces are recorded is decided where they begin: a sampled `traceparent` is gone on with, one that is not sampled is
/// carried and not recorded.
package final class SpanRecorder: Sendable {
    /// The process's own, as there is one log and one registry of metrics.
    package static let process = SpanRecorder()

    /// Spans kept; what comes while so many wait is dropped, and counted.
    package static let keptMax = 16_384

    private struct Kept {
        var spans: [TraceSpan] = []
        var droppedCount = 0
    }

    private let kept = Mutex(Kept())
    /// 0: off. Else one more than the share of new traces that are recorded, in 2⁵⁶ths.
    private let share = Atomic<UInt64>(0)
    private let lastID: Atomic<UInt64>

    /// - Parameter seed: Where ids begin. They differ from each other, and with a random seed from other processes'.
    package init(seed: UInt64 = .random(in: 0...UInt64.max)) { lastID = Atomic(seed) }

    /// Records from now on.
    ///
    /// - Parameter sample: The share of the requests without a trace that begin one, from 0 to 1.
    package func start(sample: Double) {
        let most = Double(1 << 56 as UInt64)
        share.store(UInt64(max(0, min(sample, 1)) * most) + 1, ordering: .relaxed)
    }

    package var isOn: Bool { share.load(ordering: .relaxed) > 0 }

    /// A span's id, never 0.
    package func nextID() -> UInt64 {
        let state = lastID.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
        return max(1, SplitMix64.mixed(state))
    }

    /// Begins a span of a trace that is recorded.
    ///
    /// - Returns: `nil`: there is nothing to record.
    package func begin(_ parent: TraceContext?) -> OpenSpan? {
        guard let parent, parent.isSampled, isOn else { return nil }
        return OpenSpan(context: parent.child(nextID()), parentID: parent.spanID, start: Self.now())
    }

    /// The same of a request, with which a trace may begin.
    package func beginRequest(_ parent: TraceContext?) -> OpenSpan? {
        guard parent == nil else { return begin(parent) }
        let share = share.load(ordering: .relaxed)
        guard share > 0 else { return nil }
        let traceLow = nextID()
        // The last seven bytes of a trace's id are as random as they come. Source: W3C Trace Context Level 2, §3.2.2.3.
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
        kept.withLock { kept in
            if kept.spans.count < Self.keptMax { kept.spans.append(whole) } else { kept.droppedCount += 1 }
        }
    }

    /// Hands out what was recorded since the last time, and how many more were dropped.
    package func take() -> (spans: [TraceSpan], droppedCount: Int) {
        kept.withLock { kept in
            defer { kept = Kept() }
            return (kept.spans, kept.droppedCount)
        }
    }

    /// Nanoseconds since 1970-01-01T00:00:00Z, by the wall clock.
    private static func now() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
