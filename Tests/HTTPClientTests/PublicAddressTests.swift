import CTestNames
import Glibc
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.ownThreads) struct PublicAddressTests {
    @Test(arguments: [
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.1.1", "192.169.0.1",
        "100.63.255.255", "100.128.0.0", "169.253.1.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "128.0.0.1",
        "2606:4700:4700::1111", "2a00:1450::1", "3ffe::1", "2001:200::1", "::ffff:1.1.1.1",
    ]) func ordinaryAddressIsPublic(text: String) throws {
        #expect(try PublicAddressRule.isPublic(bytes(of: text)))
    }

    @Test(arguments: [
        "0.0.0.0", "10.0.0.1", "10.255.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.168.0.1", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "fe80::1", "fc00::1", "fd12:3456::1", "ff02::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::", "3fff::1", "64:ff9b::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
    ]) func specialPurposeAddressIsNotPublic(text: String) throws {
        #expect(try !PublicAddressRule.isPublic(bytes(of: text)))
    }

    @Test func otherLengthsAreNotPublic() {
        for count in [0, 1, 5, 15, 17] {
            #expect(!PublicAddressRule.isPublic(Array(repeating: 0x20, count: count)))
        }
    }

    private func bytes(of text: String) throws -> [UInt8] {
        let is6 = text.contains(":")
        var bytes = [UInt8](repeating: 0, count: is6 ? 16 : 4)
        let code = unsafe bytes.withUnsafeMutableBytes {
            unsafe inet_pton(is6 ? AF_INET6 : AF_INET, text, $0.baseAddress)
        }
        try #require(code == 1)
        return bytes
    }

    /// No connection is made for any spelling of the address or a name that resolves to it, so that callers cannot even
    /// detect a listener.
    @Test func publicOnlyClientRejectsLocalAddresses() async throws {
        let server = LoopbackServer { _ in .answer() }
        defer { server.stop() }
        var configuration = Client.Configuration()
        configuration.publicAddressesOnly = true
        let client = Client(configuration: configuration)
        for host in ["127.0.0.1", "localhost", "127.1", "2130706433", "0", "[::1]", "[::ffff:127.0.0.1]"] {
            let request = Request("POST", "http://\(host):\(server.port)/hook", body: [1])
            let error = await #expect(throws: HTTPError.self, "\(host)") { _ = try await client.send(request) }
            #expect(error?.outcome == .notSent, "\(host)")
            #expect(error?.message.contains("not public") == true, "\(host): \(error?.message ?? "")")
        }
        #expect(server.connectionCount == 0)
        // Other programs interpret these as such an address; they are rejected or do not resolve.
        for host in [
            "localhost.", "a.localhost", "LOCALHOST", "127.0.0.1.", "0177.0.0.1", "0x7f000001", "0x7f.1", "127.0.1",
            "[::]", "[::127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::7f00:1]",
            "[fe80::1%25lo]", "[::1%25lo]", "[fd00::1]",
        ] {
            let request = Request("POST", "http://\(host):\(server.port)/hook", body: [1], connectMax: .seconds(2))
            let error = await #expect(throws: HTTPError.self, "\(host)") { _ = try await client.send(request) }
            #expect(error?.outcome == .notSent, "\(host)")
        }
        #expect(server.connectionCount == 0)
        // The handle can be reused.
        #expect(try await Client().send(Request(server.url)).status == 200)
    }

    /// The address of each connection is verified, not an earlier one of the name.
    @Test func rebindingNameIsRejected() async throws {
        let servers = (0..<2).map { _ in LoopbackServer { _ in .answer() } }
        defer { for server in servers { server.stop() } }
        // No network has addresses in 3000::/8, which are public ones.
        unsafe ctestnames_resolve("rebinding.test", "3000::1;127.0.0.1;3000::1,127.0.0.1")
        var configuration = Client.Configuration()
        configuration.publicAddressesOnly = true
        let client = Client(configuration: configuration)
        // libcurl resolves a name per port and caches the result for one minute.
        for port in [LoopbackServer.freePort()] + servers.map(\.port) {
            let request = Request(
                "POST", "http://rebinding.test:\(port)/hook", body: [1], connectMax: .seconds(2))
            let error = await #expect(throws: HTTPError.self) { _ = try await client.send(request) }
            #expect(error?.outcome == .notSent)
            if port == servers[0].port { #expect(error?.isPrivate == true, "\(error?.message ?? "")") }
        }
        #expect(servers.map(\.connectionCount) == [0, 0])
        // Another client connects to the same addresses.
        let request = Request("http://rebinding.test:\(servers[1].port)/")
        #expect(try await Client().send(request).status == 200)
    }
}
