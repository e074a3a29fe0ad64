import ArgumentParser
import Glibc
import Model
import NIOCore

/// `sandbox broker`: a Kafka broker with the catalogue's topics, on a fixed port. Its data are lost when it ends.
struct BrokerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "broker", abstract: "Emulate a Kafka broker with the catalogue's topics.",
        discussion: """
            Like Kafka, it responds to a waiting Fetch when a record arrives, and to an empty one after the time that \
            the client set (fetch.wait.max.ms).

            On SIGUSR1 it prints the number of requests since its start: a line of count, API and client.id each, \
            and their sum.
            """)

    @Option(help: "IPv4 address of this machine to listen on and to advertise.")
    var host = "127.0.0.1"

    @Option(help: "Port to listen on.")
    var port = 9092

    @Option(help: "Further topic, as name:partitions; may be repeated.")
    var topic: [String] = []

    @Option(help: "Additional latency of each response, in milliseconds.")
    var roundTrip = 0

    func validate() throws {
        guard (1...65_535).contains(port) else { throw ValidationError("--port is 1…65535, not \(port)") }
        guard (0...10_000).contains(roundTrip) else {
            throw ValidationError("--round-trip is 0…10000, not \(roundTrip)")
        }
        _ = try topics()
    }

    func run() throws {
        // Blocked before there are other threads, which inherit it; this one waits for a signal.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        for signal in [SIGTERM, SIGINT, SIGUSR1] { unsafe sigaddset(&signals, signal) }
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        let broker = try MockBroker(advertising: host, port, topics: try topics())
        // Clients can connect once the cluster has its topics: it creates one that a client requests with 4 partitions.
        let server = try BrokerServer(
            host: host, port: port, mockPort: broker.port, roundTrip: .milliseconds(Int64(roundTrip)))
        print("broker: listening on \(host):\(port)")
        fflush(nil)
        var received: Int32 = 0
        while unsafe sigwait(&signals, &received) == 0, received == SIGUSR1 {
            print(try server.requestTable())
            fflush(nil)
        }
        print("broker: stopped")
    }

    private func topics() throws -> [String: Int] {
        var topics = Dictionary(Topics.all.map { ($0.name, $0.partitions) }) { first, _ in first }
        for text in topic {
            let parts = text.split(separator: ":")
            guard parts.count == 2, let count = Int(parts[1]), (1...1_000).contains(count) else {
                throw ValidationError("--topic is name:partitions, not '\(text)'")
            }
            topics[String(parts[0])] = count
        }
        return topics
    }
}
