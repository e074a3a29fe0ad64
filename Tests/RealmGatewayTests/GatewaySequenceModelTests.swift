import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A client's queue of 5,000 mutations against a model of one number: the next sequence that the gateway expects.
@Suite(.ownThreads) struct GatewaySequenceModelTests {
    private static let queueLength = 5_000

    /// Random batches, repeats and gaps, one request at a time, at two gateways: each response matches the model's.
    @Test(arguments: Seeds.random(1, for: "sequences"))
    func randomBatchesRepeatsAndGapsMatchTheModel(seed: UInt64) async throws {
        try await withGateway(count: 2) { fixture in
            let queue = try await Queue(fixture, length: Self.queueLength)
            var random = SplitMix64(seed: seed)
            var next = 1
            var responses: [String] = []
            var gapCount = 0
            while next <= Self.queueLength {
                let request = Self.request(next: next, &random)
                let response = try await queue.send(request, at: Int.random(in: 0...1, using: &random))
                let isWhole = zip(request, request.dropFirst()).allSatisfy { $0 + 1 == $1 }
                guard isWhole, request[0] <= next else {
                    gapCount += 1
                    #expect(response.status == 409 && response.problem == "sequence-gap", "seed \(seed): \(request)")
                    #expect(response.json["expectedSequence"] as? Int == next, "seed \(seed): \(request)")
                    continue
                }
                #expect(response.status == 200, "seed \(seed): \(request.first ?? 0) at \(next): \(response.body)")
                #expect(response.results.count == request.count)
                for (sequence, result) in zip(request, response.results) {
                    if sequence == responses.count + 1 { responses.append(result) }
                    #expect(responses[sequence - 1] == result, "seed \(seed): \(sequence)")
                }
                next = max(next, request[request.count - 1] + 1)
                #expect(response.json["expectedSequence"] as? Int == next, "seed \(seed)")
            }
            #expect(gapCount > 5, "seed \(seed)")
            try await queue.checkStored()
        }
    }

    /// Concurrent requests of one client on several connections, in any order: a request with 200 had every lower
    /// number applied before it, and one with 409 had a first number that was too high.
    @Test(arguments: Seeds.random(1, for: "sequences at once"))
    func concurrentRequestsLeaveNoGap(seed: UInt64) async throws {
        try await withGateway(count: 2) { fixture in
            let queue = try await Queue(fixture, length: Self.queueLength)
            var random = SplitMix64(seed: seed)
            var next = 1
            while next <= Self.queueLength {
                let from = next
                var requests = (0..<Int.random(in: 2...6, using: &random)).map { _ in
                    Self.request(next: from + Int.random(in: 0...150, using: &random), &random)
                }
                requests.append(Array(from..<min(from + 120, Self.queueLength + 1)))
                requests.shuffle(using: &random)
                let responses = try await withThrowingTaskGroup(of: ([Int], GatewayResponse).self) { group in
                    for (index, request) in requests.enumerated() {
                        group.addTask { (request, try await queue.send(request, at: index % 2)) }
                    }
                    return try await group.reduce(into: [([Int], GatewayResponse)]()) { $0.append($1) }
                }
                next = try Self.judge(responses, from: from, "seed \(seed)")
            }
            try await queue.checkStored()
        }
    }

    /// Checks that there is an order of the requests in which each response matches the model's; returns the next
    /// number after all.
    private static func judge(_ responses: [([Int], GatewayResponse)], from start: Int, _ seed: String) throws -> Int {
        var next = start
        let accepted = try responses.filter { $0.1.status == 200 }.map { request, response in
            let expected = try #require(response.json["expectedSequence"] as? Int, "\(seed): \(response.body)")
            return (first: request[0], end: request[request.count - 1] + 1, expected: expected)
        }
        // The next number only grows. Of requests that left the same one, the first reached it, and the others are
        // repeats.
        let order = accepted.sorted {
            ($0.expected, $0.expected - $0.end, $0.first) < ($1.expected, $1.expected - $1.end, $1.first)
        }
        for request in order {
            #expect(
                request.first <= next && request.expected == max(next, request.end),
                "\(seed): accepted behind a gap at \(next): \(order)")
            next = max(next, request.end)
        }
        for (request, response) in responses where response.status != 200 {
            let expected = try #require(response.json["expectedSequence"] as? Int, "\(seed): \(response.body)")
            let isWhole = zip(request, request.dropFirst()).allSatisfy { $0 + 1 == $1 }
            #expect(response.status == 409 && (start...next).contains(expected), "\(seed): \(response.body)")
            #expect(!isWhole || request[0] > expected, "\(seed): \(request) at \(expected)")
        }
        return next
    }

    /// Most requests have the next numbers; others start too early or too late, or have a gap.
    private static func request(next: Int, _ random: inout SplitMix64) -> [Int] {
        let count =
            random.happens(10) ? Int.random(in: 1...500, using: &random) : Int.random(in: 1...40, using: &random)
        var first = next
        if random.happens(25) { first = max(1, next - Int.random(in: 1...60, using: &random)) }
        if random.happens(15) { first = next + Int.random(in: 1...60, using: &random) }
        first = min(first, queueLength)
        var request = Array(first..<min(first + count, queueLength + 1))
        if request.count > 2, random.happens(10) {
            request.remove(at: Int.random(in: 1..<(request.count - 1), using: &random))
        }
        return request
    }
}

/// A client's queue: some mutations change the same objects, and some are rejected.
private struct Queue: Sendable {
    let device: GatewayDevice
    let mutations: [String]

    init(_ fixture: GatewayFixture, length: Int) async throws {
        device = try await GatewayDevice(fixture, "ana@example.com")
        let ids = (0..<100).map { _ in UUID() }
        var mutations: [String] = []
        for number in 0..<length {
            let fields = number % 7 == 3 ? #"{"colour":1}"# : #"{"text":"\#(number)"}"#
            mutations.append(await device.mutation("put", ids[number % ids.count], fields))
        }
        self.mutations = mutations
    }

    func send(_ sequences: [Int], at gateway: Int) async throws -> GatewayResponse {
        try await device.send(sequences.map { mutations[$0 - 1] }, at: gateway)
    }

    /// Each mutation was applied once, in order.
    func checkStored() async throws {
        let (next, responses) = try device.fixture.withDatabase { connection in
            (
                try connection.run("SELECT next_sequence FROM device.client")[0].value(0, as: Int64.self),
                try connection.run("SELECT sequence FROM device.mutation ORDER BY 1").decode(Int64.self)
            )
        }
        #expect(next == Int64(mutations.count) + 1)
        #expect(responses == Array(1...Int64(mutations.count)))
        let texts = try device.fixture.entries(await device.realm).values
        #expect(texts.count == 100)
    }
}
