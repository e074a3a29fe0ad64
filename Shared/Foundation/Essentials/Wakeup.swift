import Glibc

/// Wakes a thread that waits for several events.
///
/// Any thread may signal it. Signals are not counted: several wake the waiting thread once. It wraps a pipe, because
/// Swift's Glibc module has no `eventfd(2)`.
package final class Wakeup: Sendable {
    private let readEnd: Int32
    /// The descriptor to which a library may write a byte as a signal.
    package let writeEnd: Int32

    /// - Throws: ``NoFileDescriptor``
    package init() throws(NoFileDescriptor) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw NoFileDescriptor() }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// Interrupts the current or the next wait.
    package func signal() {
        var one: UInt8 = 1
        _ = unsafe write(writeEnd, &one, 1)
    }

    /// Clears the signal.
    ///
    /// - Returns: Whether it was signalled.
    @discardableResult
    package func drain() -> Bool {
        var wasSignalled = false
        unsafe withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            while unsafe read(readEnd, buffer.baseAddress, buffer.count) > 0 { wasSignalled = true }
        }
        return wasSignalled
    }

    /// Returns immediately when signalled, otherwise after `waitMax`, and clears the signal.
    ///
    /// - Parameter descriptor: Also returns when this descriptor is readable.
    /// - Returns: Whether it was signalled.
    @discardableResult
    package func wait(atMost waitMax: Duration, orReadable descriptor: Int32? = nil) -> Bool {
        // poll(2) ignores negative descriptors.
        var entries = [readEnd, descriptor ?? -1].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard unsafe poll(&entries, 2, Int32(clamping: max(0, waitMax.milliseconds(roundedUp: true)))) > 0 else {
            return false
        }
        return drain()
    }
}

/// The process has reached its limit of open files.
package struct NoFileDescriptor: Error, CustomStringConvertible {
    package var description: String { "the process has no free file descriptor" }
}
