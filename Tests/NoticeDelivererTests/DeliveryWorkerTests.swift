import Essentials
import FoundationEssentials
import LocalCluster
import Logging
import Model
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker
@testable import NoticeDeliverer

/// The handler in its worker, with a broker and many people.
@Suite(.ownThreads) struct DeliveryWorkerTests {
    /// Twenty people's receivers accept a call and never respond, with forty notices each: each of them takes one slot,
    /// and other people's notices are delivered.
    @Test func hangingReceiverDoesNotBlockOthers() async throws {
        try await withMockCluster(topics: [Topics.notice.name: Topics.notice.partitions]) { cluster in
            var world = try DeliveryWorld()
            for number in 0..<20 {
                try world.switchPerson(to: "dead\(number)@example.com")
                try world.choose(
                    DeliveryChoice(webhook: world.receivers.webURL + "/hook/dead\(number)?hold=1"))
                for count in 0..<40 { try world.notify("\(count)") }
            }
            try world.switchPerson(to: "ana@example.com")
            try world.choose(DeliveryChoice(webhook: world.receivers.webURL + "/hook/ana", email: true))
            for count in 0..<20 { try world.notify("\(count)") }
            let group = WorkerConfiguration(
                group: Services.noticeDeliverer.name, topics: [Topics.notice.name], brokers: cluster.address,
                properties: [:], conninfo: world.acme.conninfo)
            var worker = try Worker(
                try DeliveryWorld.handler(world.receivers, world.time, callMax: .seconds(5)), at: group,
                limits: WorkerLimits(), logger: Logger(label: "worker"))
            let deadline = ContinuousClock.now + patienceMax
            var counts: [String: Int64] = [:]
            repeat {
                #expect(try worker.step() == nil)
                let rows = try world.acme.connection.run("SELECT state, count(*) FROM delivery.shipment GROUP BY state")
                counts = Dictionary(uniqueKeysWithValues: try rows.decode(String.self, Int64.self))
            } while (counts["sent"] ?? 0) < 40 && .now < deadline
            #expect(counts == ["sent": 40, "waiting": 800])
            let received = try world.receivers.received()
            #expect(received.count { $0.path == "/hook/ana" } == 20)
            let dead = Dictionary(grouping: received.filter { $0.path.contains("dead") }, by: \.path)
            // No key remains for the person who got all notices.
            let key = EventSubject(realm: world.path, kind: .deliveryChoice, id: world.person).description
            while try world.parked().contains(key), .now < deadline { _ = try worker.step() }
            #expect(try !world.parked().contains(key) && world.parked().count == 20)
            #expect(dead.values.allSatisfy { $0.count == 1 } && dead.count <= 20)
        }
    }
}
