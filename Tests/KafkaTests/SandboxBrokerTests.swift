import Kafka
import LocalCluster
import TestSupport
import Testing

/// The emulated broker times its responses to a Fetch as Kafka does.
@Suite(.ownThreads) struct SandboxBrokerTests {
    private static let group = fastGroup.merging(["fetch.wait.max.ms": "500", "client.id": "reader"]) { $1 }

    /// Between a message and its arrival lies no wait of 20 s, in either topic.
    @Test func messageEndsTheWaitOfAConsumer() throws {
        let broker = try SandboxBroker(topics: ["t:3", "u:1"])
        var consumer = try Consumer(
            brokers: broker.address, group: "g", topics: ["t", "u"],
            properties: Self.group.merging(["fetch.wait.max.ms": "20000"]) { $1 })
        var producer = try Producer(brokers: broker.address)
        try producer.send("t", key: [1], value: [1])
        producer.expectFlushed()
        _ = try consumer.receive(1)
        var waits: [Duration] = []
        var count = 0
        for topic in ["t", "u", "t", "u", "t", "u", "t"] {
            try waitUntil("the next Fetch") { try broker.requestCount("Fetch", from: "reader") > count }
            count = try broker.requestCount("Fetch", from: "reader")
            let start = ContinuousClock.now
            try producer.send(topic, key: [1], value: [2])
            _ = try consumer.receive(1)
            waits.append(ContinuousClock.now - start)
        }
        #expect(waits.sorted()[waits.count / 2] < .seconds(10), "\(waits)")
    }

    @Test func idleConsumerFetchesAtItsMaximumWait() throws {
        let broker = try SandboxBroker(topics: ["t:1"])
        try produce(["0"], at: broker.address)
        var consumer = try Consumer(brokers: broker.address, group: "g", topics: ["t"], properties: Self.group)
        _ = try consumer.receive(1)
        try broker.waitForRequests(1, "Fetch", from: "reader")
        let start = ContinuousClock.now
        let before = try broker.requestCount("Fetch", from: "reader")
        try broker.waitForRequests(6, "Fetch", from: "reader")
        let count = try broker.requestCount("Fetch", from: "reader") - before
        let elapsed = ContinuousClock.now - start
        // Five whole waits lie between six requests.
        #expect(elapsed > .milliseconds(500) * (count - 1), "\(count) requests in \(elapsed)")
    }

    @Test func laterRequestsWaitForTheFetchBeforeThem() throws {
        let broker = try SandboxBroker(topics: ["t:1"])
        var connection = try KafkaConnection(broker)
        let start = ContinuousClock.now
        connection.sendFetch("t", from: 0, waitMilliseconds: 700, id: 1)
        connection.sendPing(id: 2)
        let first = try connection.response()
        #expect(first.id == 1 && ContinuousClock.now - start >= .milliseconds(700))
        #expect(try connection.response().id == 2)
    }

    /// Each wait is longer than the test waits for a response.
    @Test func errorIsNoReasonToWait() throws {
        let broker = try SandboxBroker(topics: ["t:1"])
        var connection = try KafkaConnection(broker)
        connection.sendFetch("t", from: 1_000, waitMilliseconds: 3_600_000, id: 1)
        let response = try connection.response()
        // Throttle time, count of topics, topic, count of partitions, partition; OFFSET_OUT_OF_RANGE.
        #expect(Array(response.body[19..<21]) == [0, 1], "\(response.body)")
    }

    @Test func messageEndsALongWait() throws {
        let broker = try SandboxBroker(topics: ["t:1"])
        var connection = try KafkaConnection(broker)
        for offset in 0..<3 as Range<Int64> {
            connection.sendFetch("t", from: offset, waitMilliseconds: 3_600_000, id: Int32(offset))
            // Two messages arrive while it waits, one may arrive while the mock cluster is queried.
            if offset != 1 { try waitUntil("a Fetch") { try broker.requestCount("Fetch", from: "raw") > offset } }
            try produce(["message \(offset)"], at: broker.address)
            let response = try connection.response()
            #expect(String(decoding: response.body, as: UTF8.self).contains("message \(offset)"))
        }
    }

    @Test func closedConnectionEndsItsWait() throws {
        let broker = try SandboxBroker(topics: ["t:1"])
        let before = broker.descriptorCount
        do {
            let connection = try KafkaConnection(broker)
            connection.sendFetch("t", from: 0, waitMilliseconds: 3_600_000, id: 1)
            try waitUntil("the Fetch") { try broker.requestCount("Fetch", from: "raw") == 1 }
            #expect(broker.descriptorCount == before + 3)
        }
        try waitUntil("its connections are closed") { broker.descriptorCount == before }
        // No Fetch waits for these records.
        try produce(["0"], at: broker.address)
        try produce(["1"], at: broker.address)
    }

    @Test func roundTripDelaysEachResponse() throws {
        let broker = try SandboxBroker(topics: ["t:1"], roundTrip: 300)
        var connection = try KafkaConnection(broker)
        let start = ContinuousClock.now
        for id in 0..<3 as Range<Int32> {
            connection.sendPing(id: id)
            #expect(try connection.response().id == id)
        }
        #expect(ContinuousClock.now - start >= .milliseconds(900))
    }

    /// A client that connects before the broker has its topics creates one with 4 partitions.
    @Test func clientsConnectOnlyAfterTheTopicsExist() throws {
        let port = try Ports.free()
        let consumer = try Consumer(
            brokers: "127.0.0.1:\(port)", group: "g", topics: ["t"],
            properties: ["reconnect.backoff.ms": "1", "reconnect.backoff.max.ms": "1"])
        let broker = try SandboxBroker(topics: ["t:3"], port: port)
        let metadata = try Admin(brokers: broker.address).metadata()
        #expect(metadata.topics["t"] == 3)
        withExtendedLifetime(consumer) {}
    }

    @Test(arguments: [
        (["--host", "0.0.0.0"], "broker: '0.0.0.0' is not an IPv4 address to which clients can connect"),
        (["--host", "broker.example"], "broker: 'broker.example' is not an IPv4 address to which clients can connect"),
        (["--host", "192.0.2.1"], "broker: 192.0.2.1:9092 is taken, or not an address of this machine"),
    ]) func unusableAddressIsAnError(_ arguments: [String], _ message: String) throws {
        let result = try runExecutable("sandbox", ["broker"] + arguments)
        #expect(result.status == 1 && result.errors.contains(message), "\(result)")
    }
}
