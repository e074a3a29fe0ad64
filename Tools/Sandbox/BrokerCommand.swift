import ArgumentParser
import Glibc
import Model

/// `sandbox broker`: a Kafka broker with the catalogue's topics, on a fixed port. Its data are lost when it ends.
struct BrokerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "broker", abstract: "Emulate a Kafka broker with the catalogue's topics.")

    @Option(help: "IPv4 address of this machine to listen on, which clients are given.")
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
        let broker = try MockBroker(host: host, port: port, topics: try topics(), roundTrip: roundTrip)
        print("broker: listening on \(broker.address)")
        // The cluster runs on its own threads; this one waits for a signal.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGINT)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        var received: Int32 = 0
        unsafe sigwait(&signals, &received)
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
