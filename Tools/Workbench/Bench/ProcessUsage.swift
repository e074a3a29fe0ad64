import Foundation
import LocalCluster

/// Processor time and memory of a process, from `/proc` (proc(5)).
enum ProcessUsage {
    /// A value of `/proc/<pid>/status`, memory in kB; `nil` if the process has ended.
    static func value(_ name: String, of process: pid_t, in file: String = "status") -> Double? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") })
        else { return nil }
        return line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Double($0) }
    }

    /// Processor time, wake-ups and memory of processes since their start.
    struct Sample: Sendable {
        var processorSeconds = 0.0
        /// Thread → number of times that it waited.
        var waits: [String: Double] = [:]
        var wakeupCount: Double { waits.values.reduce(0, +) }
        var threadCount = 0
        /// In MB.
        var memory = 0.0

        /// The time and wake-ups since `earlier`, and the present threads and memory.
        func change(since earlier: Sample) -> Sample {
            var change = self
            change.processorSeconds -= earlier.processorSeconds
            // Those of threads that ended meanwhile are missing.
            for (thread, count) in waits { change.waits[thread] = count - earlier.waits[thread, default: 0] }
            return change
        }

        static func + (first: Sample, second: Sample) -> Sample {
            Sample(
                processorSeconds: first.processorSeconds + second.processorSeconds,
                waits: first.waits.merging(second.waits, uniquingKeysWith: +),
                threadCount: first.threadCount + second.threadCount, memory: first.memory + second.memory)
        }
    }

    /// Returns the usage of a process and its children.
    ///
    /// - Parameter isShared: Whether they share memory, of which each counts its proportion.
    static func sample(of process: pid_t, isShared: Bool) -> Sample {
        var sample = Sample()
        sample.processorSeconds = processorTime(of: process)
        for member in [process] + ProcessTable.children(of: process) {
            sample.memory += (value(isShared ? "Pss" : "Rss", of: member, in: "smaps_rollup") ?? 0) / 1_024
            let folder = "/proc/\(member)/task"
            for thread in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                sample.waits[thread] = value("voluntary_ctxt_switches", of: member, in: "task/\(thread)/status")
                sample.threadCount += 1
            }
        }
        return sample
    }

    /// Sets the peak memory of a process (`VmHWM`) to its current memory.
    static func resetPeakMemory(of process: pid_t) {
        try? "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
    }

    /// Processor time of a process and its children, in seconds; ended children count too.
    static func processorTime(of process: pid_t) -> Double {
        let children = ProcessTable.children(of: process).map { ticks(of: $0, in: 11..<13) }
        return children.reduce(ticks(of: process, in: 11..<15), +) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Fields 14 and 15 are utime and stime, 16 and 17 those of children that were waited for.
    private static func ticks(of process: pid_t, in range: Range<Int>) -> Double {
        guard let fields = ProcessTable.stat(of: process), fields.count >= range.upperBound else { return 0 }
        return fields[range].compactMap { Double($0) }.reduce(0, +)
    }
}

/// Time for which a process of the machine waited for a processor or for the disk: other processes distort the figures.
struct SystemPressure {
    /// `total` of the line `some` (Linux, `Documentation/accounting/psi.rst`); `nil` if the kernel does not count it.
    private let processor: Duration?
    private let disk: Duration?
    private let time = ContinuousClock.now

    static func now() -> SystemPressure { SystemPressure(processor: total("cpu"), disk: total("io")) }

    private static func total(_ resource: String) -> Duration? {
        guard let text = try? String(contentsOfFile: "/proc/pressure/\(resource)", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("some ") }),
            let total = line.split(separator: "=").last.flatMap({ Int64($0) })
        else { return nil }
        return .microseconds(total)
    }

    /// Adds the share of the time since `self` in which a process waited.
    func add(to report: inout BenchReport) {
        let now = SystemPressure.now()
        for (name, before, after) in [("processor", processor, now.processor), ("disk", disk, now.disk)] {
            guard let before, let after else { continue }
            report.add("\(name) pressure", "%", (after - before) / (now.time - time) * 100)
        }
    }
}
