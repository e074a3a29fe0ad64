import FoundationEssentials
import Glibc

/// Sets close-on-exec on all open sockets.
///
/// NIO does not set it. The crash handler of Swift's runtime (`swift-backtrace`) would inherit the sockets and keep the
/// ports after the process has ended.
func closeSocketsOnExec() {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for descriptor in names.compactMap({ Int32($0) }) where isSocket(descriptor) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }
}

private func isSocket(_ descriptor: Int32) -> Bool {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
}
