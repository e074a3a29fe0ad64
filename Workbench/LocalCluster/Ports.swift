import Foundation
import Synchronization

/// Free TCP ports of 127.0.0.1, each given once.
///
/// They lie below the range from which the kernel takes ports for outgoing connections (32768 and up on Linux), so that
/// a port is still free when a process that was killed listens on it again.
package enum Ports {
    private static let given = Mutex<Set<UInt16>>([])
    private static let range: ClosedRange<UInt16> = 20_000...32_000
    private static let attemptsMax = 1_000

    package static func free() throws(ClusterFailure) -> Int {
        for _ in 0..<attemptsMax {
            let port = UInt16.random(in: range)
            let isNew = given.withLock { $0.insert(port).inserted }
            if isNew, unsafe withSocket(port, { unsafe bind($0, $1, $2) }) { return Int(port) }
        }
        throw ClusterFailure("no free port in \(range) of 127.0.0.1")
    }

    /// Whether something listens on the port.
    package static func isListening(_ port: Int) -> Bool {
        unsafe withSocket(UInt16(port)) { unsafe connect($0, $1, $2) }
    }

    private static func withSocket(
        _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        unsafe address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
