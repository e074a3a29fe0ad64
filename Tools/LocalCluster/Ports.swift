import Foundation
import Synchronization

/// Free TCP ports of 127.0.0.1, each given to one caller of one process.
///
/// They lie below the range from which the kernel takes ports for outgoing connections (32768 and up on Linux), so that
/// a port is still free when a process that was killed listens on it again. Other processes of this user that take
/// their ports here do not get it either, until this one ends: each port is a byte of one file, locked by its owner.
package enum Ports {
    private static let range: ClosedRange<UInt16> = 20_000...32_000
    private static let attemptsMax = 1_000
    private static let given = Mutex<Set<UInt16>>([])
    private static let claims = "/tmp/fieldpost-ports-\(getuid())"
    private static let claimsFile = openClaims()

    package static func free() throws(ClusterFailure) -> Int {
        guard claimsFile >= 0 else { throw ClusterFailure("\(claims) cannot be opened") }
        for _ in 0..<attemptsMax {
            let port = UInt16.random(in: range)
            let isNew = given.withLock { $0.insert(port).inserted }
            guard isNew, claim(port, in: claimsFile) else { continue }
            if unsafe withSocket(port, { unsafe bind($0, $1, $2) }) { return Int(port) }
        }
        throw ClusterFailure("no free port in \(range) of 127.0.0.1")
    }

    /// Claims a certain port for this process.
    ///
    /// - Returns: Whether nothing listens on it, and neither another process nor this one has claimed it before.
    package static func take(_ port: Int) -> Bool {
        guard let number = UInt16(exactly: port), claimsFile >= 0, !isListening(port) else { return false }
        let isNew = given.withLock { $0.insert(number).inserted }
        return isNew && claim(number, in: claimsFile)
    }

    /// `F_OFD_SETLK` of fcntl(2), which the module of the C library does not show: a lock of who opened the file, and
    /// not of the process, which would lose all its locks with any close of the file.
    private static let setLock: Int32 = 37

    static func openClaims() -> Int32 {
        unsafe open(claims, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }

    /// Whether the port belongs to who opened the file, from now until it is closed.
    static func claim(_ port: UInt16, in file: Int32) -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(port)
        lock.l_len = 1
        return unsafe fcntl(file, setLock, &lock) == 0
    }

    /// Whether something listens on the port.
    package static func isListening(_ port: Int, on address: String = "127.0.0.1") -> Bool {
        unsafe withSocket(UInt16(port), of: address) { unsafe connect($0, $1, $2) }
    }

    /// Whether a process of this user listens on the port: what answers there is that process and no other.
    ///
    /// Source: proc(5), `/proc/pid/fd` and `/proc/pid/net/tcp`, which is that of the process's network namespace.
    package static func isListening(_ port: Int, by process: Int32) -> Bool {
        let sockets = Set(["tcp", "tcp6"].flatMap { listeners(on: port, in: "/proc/\(process)/net/\($0)") })
        let folder = "/proc/\(process)/fd"
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return descriptors.contains { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            return target.map(sockets.contains) ?? false
        }
    }

    /// The sockets that listen on a port, as `/proc/pid/fd` names them.
    package static func listeners(on port: Int, in table: String = "/proc/net/tcp") -> [String] {
        let hexadecimal = String(port, radix: 16, uppercase: true)
        let end = ":" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal
        var sockets: [String] = []
        // The header is followed by those that listen, and these by all others.
        for row in lines(of: table).dropFirst() {
            let columns = row.split(separator: " ")
            guard columns.count > 9, columns[3] == "0A" else { break }
            if columns[1].hasSuffix(end) { sockets.append("socket:[\(columns[9])]") }
        }
        return sockets
    }

    /// The lines of a table of the kernel. A read may return less than requested, which Foundation treats as the end.
    private static func lines(of path: String) -> [Substring] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes: [UInt8] = []
        var page = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(file, &page, page.count)
            guard count > 0 else { break }
            bytes += page.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }

    private static func withSocket(
        _ port: UInt16, of host: String = "127.0.0.1",
        _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        unsafe address.sin_addr.s_addr = inet_addr(host)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe call(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
