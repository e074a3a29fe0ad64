import Foundation
import Testing

@testable import LocalCluster

@Suite struct PortsTests {
    @Test func aPortThatWasGivenIsNotGivenToAnotherProcess() throws {
        let port = UInt16(try Ports.free())
        // Another process opens the file for itself, as is done here.
        let others = Ports.openClaims()
        defer { close(others) }
        #expect(!Ports.claim(port, in: others))
    }

    @Test func aPortIsAnybodysOnceItsOwnerIsGone() throws {
        let port = UInt16.random(in: 33_000...65_000)
        let (first, second) = (Ports.openClaims(), Ports.openClaims())
        defer { close(second) }
        #expect(Ports.claim(port, in: first))
        #expect(!Ports.claim(port, in: second))
        close(first)
        #expect(Ports.claim(port, in: second))
    }
}
