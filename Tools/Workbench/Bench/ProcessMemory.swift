import Foundation

/// What the kernel tells of a process's memory (`proc(5)`).
enum ProcessMemory {
    /// A line of `/proc/PID/status` or another file of its form, in kB; `nil` when the process runs no more.
    static func kilobytes(_ name: String, of process: pid_t, in file: String = "status") -> Double? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") })
        else { return nil }
        return line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Double($0) }
    }
}
