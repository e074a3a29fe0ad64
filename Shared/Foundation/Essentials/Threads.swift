import Glibc

/// Starts a detached thread. The kernel truncates its name to 15 bytes.
package func startThread(named name: String, _ body: @escaping @Sendable () -> Void) {
    let start = unsafe Unmanaged.passRetained(ThreadStart(name: name, body: body)).toOpaque()
    var thread = pthread_t()
    let status = unsafe pthread_create(&thread, nil, runThread, start)
    guard status == 0 else {
        // The system's limit of threads is reached, so the process cannot work.
        let line = Array("cannot start the thread \(name)\n".utf8)
        _ = unsafe write(STDERR_FILENO, line, line.count)
        _exit(1)
    }
    pthread_detach(thread)
}

private final class ThreadStart: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
}

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument = unsafe argument else { return nil }
    let start = unsafe Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
    nameThisThread(start.name)
    start.body()
    return nil
}

/// Sets the thread's name through procfs (proc(5)): Swift's Glibc module has no `pthread_setname_np`.
private func nameThisThread(_ name: String) {
    let descriptor = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    let text = Array(name.utf8.prefix(15))
    _ = unsafe write(descriptor, text, text.count)
    close(descriptor)
}

/// Blocks the calling thread, which must not be one of Swift's pool.
package func pauseThread(_ duration: Duration) {
    _ = poll(nil, 0, Int32(clamping: duration.milliseconds))
}
