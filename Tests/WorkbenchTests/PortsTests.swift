import Foundation
import TestSupport
import Testing

@testable import LocalCluster

@Suite(.ownThreads) struct PortsTests {
    @Test func claimedPortIsNotGivenToAnotherProcess() throws {
        let port = UInt16(try Ports.free())
        // Another process opens the file for itself, as is done here.
        let others = Ports.openClaims()
        defer { close(others) }
        #expect(!Ports.claim(port, in: others))
    }

    @Test func takenPortIsRefusedToOtherProcessesAndToThisOne() throws {
        let port = try Ports.free()
        #expect(!Ports.take(port))
        let other = Ports.openClaims()
        defer { close(other) }
        // Installations on this machine claim ports from 10,000 on.
        let another = UInt16.random(in: 2_000..<10_000)
        #expect(Ports.claim(another, in: other))
        #expect(!Ports.take(Int(another)))
    }

    /// A process is identified by its listening socket, not by a response at its port. The kernel's table has more
    /// than one page.
    @Test func listeningProcessIsIdentified() throws {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        for port in try (0..<40).map({ _ in try Ports.free() }) {
            let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            sockets.append(socket)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(port).bigEndian
            let isBound = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            try #require(isBound)
            #expect(!Ports.isListening(port, by: getpid()))
            try #require(listen(socket, 1) == 0)
            #expect(Ports.isListening(port, by: getpid()))
            #expect(Ports.isListening(port) && !Ports.isListening(port, by: getppid()))
        }
    }

    @Test func portIsFreeAfterItsOwnerEnds() throws {
        let port = UInt16.random(in: 33_000...65_000)
        let (first, second) = (Ports.openClaims(), Ports.openClaims())
        defer { close(second) }
        #expect(Ports.claim(port, in: first))
        #expect(!Ports.claim(port, in: second))
        close(first)
        #expect(Ports.claim(port, in: second))
    }
}
