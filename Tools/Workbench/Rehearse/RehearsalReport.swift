import CommandLineSupport

/// What was done to a service, and what came of it. All times are in seconds.
struct RehearsedStep: Encodable, Sendable {
    enum Act: String, Encodable, Sendable {
        /// Asked to end, and started again after a while.
        case stopped
        /// The schema was brought up to date, while all services ran.
        case migrated
        /// Asked to end, and another build of it started at once.
        case replaced
        /// From one instance to several, and back.
        case scaled
        /// Killed with signal 9, and started again at once.
        case killed
    }

    /// The executable's name, or what else it was done to.
    let part: String
    let act: Act
    /// Until it had ended; of several, the slowest. `nil`: nothing was asked to end.
    var ended: Double?
    /// Until it was ready and had its partitions, from its start; of several, until the last one was.
    var ready: Double?
    /// How long a device waited at most.
    var waits = DeviceWaits()
    /// The age of the oldest message that any group had not finished, at most.
    var lagMax = 0.0
    /// Until no group was behind any more, after the service was ready.
    var closed = 0.0
}

/// How long devices waited at most, in seconds.
struct DeviceWaits: Encodable, Sendable {
    /// Until what a device wrote was accepted.
    var accepted = 0.0
    /// Until it came back in the device's own stream.
    var seen = 0.0
    /// Until somebody else's device had it: through the relay, Kafka and a worker.
    var shared = 0.0
}

/// What a rehearsal says at its end.
struct RehearsalReport: Encodable, Sendable {
    var steps: [RehearsedStep] = []
    /// What each demo said.
    var demos: [String] = []
    /// What devices wrote while it went on, beside the demos.
    var noteCount = 0
    /// What is not as it should be.
    var troubles: [String] = []

    /// The table and the verdict.
    var text: String {
        var table = Table(
            [
                ("service", .left), ("act", .left), ("ended", .right), ("ready", .right), ("accepted", .right),
                ("seen", .right), ("shared", .right), ("lag", .right), ("closed", .right),
            ], empty: "nothing was rehearsed")
        for step in steps {
            let times = [
                step.ended, step.ready, step.waits.accepted, step.waits.seen, step.waits.shared, step.lagMax,
                step.closed,
            ]
            table.add([step.part, step.act.rawValue] + times.map { $0.map(Self.text) ?? "-" })
        }
        let longest = steps.map { max($0.waits.accepted, $0.waits.seen) }.max() ?? 0
        let closed = steps.map(\.closed).max() ?? 0
        var lines = [
            table.text,
            """
            Seconds. ended: until it had ended; ready: from its start, with its partitions. Devices' longest waits: \
            accepted: until a change was in PostgreSQL, seen: until it came back to the device, shared: until somebody \
            else's device had it. lag: the oldest message that any group had not finished, closed: until none was \
            behind any more.
            """, "",
        ]
        lines += demos
        lines.append("\(noteCount) notes of the devices that were watched: all arrived")
        let shared = steps.map(\.waits.shared).max() ?? 0
        lines.append(
            """
            longest pause of a device: \(Self.text(longest)) s, and until another's had what was shared: \
            \(Self.text(shared)) s; lag closed within \(Self.text(closed)) s
            """)
        lines += troubles
        lines.append("verdict: " + (troubles.isEmpty ? "no differences" : "\(troubles.count) troubles"))
        return lines.joined(separator: "\n")
    }

    /// Tenths of a second.
    static func text(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
