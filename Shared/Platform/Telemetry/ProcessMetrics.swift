import FoundationEssentials
import Glibc

/// The kernel's data about this process, under the names of Prometheus' client libraries.
package enum ProcessMetrics {
    /// Reads `/proc/self`; unreadable values are omitted.
    ///
    /// - Parameter isReady: Whether `/health/ready` and `/health/live` return 200, which is a metric too.
    package static func text(isReady: Bool) -> String {
        var text = ""
        func add(_ name: String, _ kind: String, _ value: Double) {
            text += PrometheusText.head(name, kind) + "\(name) \(PrometheusText.number(value))\n"
        }
        add("fieldpost_ready", "gauge", isReady ? 1 : 0)
        if let fields = statFields() {
            let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
            // Fields 14, 15 and 22 of proc(5); the array begins with field 3.
            if let user = Double(fields[11]), let system = Double(fields[12]) {
                add("process_cpu_seconds_total", "counter", (user + system) / ticks)
            }
            if let threads = Double(fields[17]) { add("process_threads", "gauge", threads) }
            if let started = Double(fields[19]), let booted = bootTime() {
                add("process_start_time_seconds", "gauge", booted + started / ticks)
            }
            if let pages = Double(fields[21]) {
                add("process_resident_memory_bytes", "gauge", pages * Double(sysconf(Int32(_SC_PAGESIZE))))
            }
        }
        if let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            // Without the descriptor of the directory being read.
            add("process_open_fds", "gauge", Double(descriptors.count - 1))
        }
        return text
    }

    private static func statFields() -> [Substring]? {
        guard let text = read("/proc/self/stat"), let close = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        return fields.count > 21 ? fields : nil
    }

    private static func bootTime() -> Double? {
        read("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }.flatMap { Double($0.dropFirst(6)) }
    }

    /// Reads until the end, because files in `/proc` report a size of 0.
    private static func read(_ path: String) -> String? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while text.count < 1 << 20 {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }
}
