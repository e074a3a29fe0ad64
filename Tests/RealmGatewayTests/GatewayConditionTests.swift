import Access
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Conditional mutations: optimistic concurrency by position.
@Suite(.ownThreads) struct GatewayConditionTests {
    private func mutation(
        _ device: GatewayDevice, _ op: String, _ id: UUID, _ fields: String?, at position: String
    ) async -> String {
        let mutation = await device.mutation(op, id, fields)
        return mutation.dropLast() + ",\"position\":\(position)}"
    }

    private func position(_ result: String) throws -> Int {
        try #require(result.split(separator: " ").last.flatMap { Int($0) })
    }

    @Test func staleExpectedPositionIsRejected() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            let made = try await ana.send([await mutation(ana, "put", id, "{\"text\":\"a\"}", at: "0")]).results
            let first = try position(made[0])
            // The object exists now, for a put as for the others.
            let again = try await ana.send([
                await mutation(ana, "put", id, "{\"text\":\"b\"}", at: "0"),
                await mutation(ana, "patch", id, "{\"text\":\"b\"}", at: "\(first - 1)"),
                await mutation(ana, "delete", id, nil, at: "\(first + 1)"),
                await mutation(ana, "patch", UUID(), "{\"text\":\"b\"}", at: "\(first)"),
            ]).results
            #expect(again == Array(repeating: "version-conflict", count: 4))
            let key = "TimeEntry/\(id.text)"
            #expect(try fixture.stored(await ana.realm)[key]?.contains("\"a\"") == true)
            // One of two writers at the same position succeeds, and its retry gets the same result although the object
            // has changed since.
            let (patch, late) = (
                await mutation(ana, "patch", id, "{\"text\":\"c\"}", at: "\(first)"),
                await mutation(ana, "patch", id, "{\"text\":\"d\"}", at: "\(first)")
            )
            for _ in 0..<2 {
                let results = try await ana.send([patch, late]).results
                #expect(try position(results[0]) > first && results[1] == "version-conflict")
            }
            #expect(try fixture.stored(await ana.realm)[key]?.contains("\"c\"") == true)
            let gone = try await ana.send([await ana.mutation("delete", id)]).results
            let tomb = try await ana.send([await mutation(ana, "put", id, "{\"text\":\"e\"}", at: "0")]).results
            #expect(gone[0].hasPrefix("accepted") && tomb == ["version-conflict"])
            for wrong in ["-1", "1.5", "\"1\"", "null"] {
                let results = try await ana.send([await mutation(ana, "patch", id, "{\"text\":\"f\"}", at: wrong)])
                #expect(results.results == ["malformed-mutation"])
            }
        }
    }

    /// Of many writers with the same expected position, at several gateways, one succeeds.
    @Test func concurrentWritersWithOneExpectedPositionGiveOneSuccess() async throws {
        try await withGateway(count: 2) { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let task = UUID()
            let put = await manager.mutation("put", task, "{\"title\":\"t\"}", kind: "FieldTask", in: "/manager")
            let start = try position(try await manager.send([put]).results[0])
            let results = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let boss = try await fixture.device("boss\(number)@example.com", role: .manager)
                        let patch = await boss.mutation(
                            "patch", task, "{\"title\":\"\(number)\"}", kind: "FieldTask", in: "/manager")
                        let conditional = patch.dropLast() + ",\"position\":\(start)}"
                        return try await boss.send([String(conditional)], at: number % 2).results[0]
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count { $0.hasPrefix("accepted") } == 1)
            #expect(results.count { $0 == "version-conflict" } == 7)
        }
    }

    /// Writes of own objects share a transaction; a write of others' objects in `/common` does not.
    @Test func transactionsAreSharedUnlessFootprintsConflict() throws {
        let people = (1...3).map { number in
            Caller.person(
                BoundPerson(
                    environment: EnvironmentID(rawValue: 1), id: Int32(number), email: "\(number)@example.com",
                    realm: .users, object: UUID()))
        }
        func request(
            _ caller: Caller, _ realm: RealmPath, _ kind: Kind, _ id: UUID?, _ operation: Mutation.Operation = .delete
        ) -> MutationRequest {
            let change = Mutation(operation: operation, kind: kind, id: id ?? UUID())
            return MutationRequest(
                caller: caller, address: "", clientID: UUID(), traceparent: nil,
                mutations: [
                    SubmittedMutation(sequence: 1, content: .success(RealmMutation(realm: realm, mutation: change)))
                ])
        }
        func areTogether(_ requests: MutationRequest...) -> Bool {
            var footprints = Footprints()
            return requests.map { footprints.admit($0) }.allSatisfy(\.self)
        }
        let own = people.map { request($0, .common, .person, $0.object) }
        let lookup = request(people[1], .common, .personLookup, people[1].object)
        let role = request(people[2], .common, .person, people[0].object)
        let membership = request(people[2], .common, .membership, nil)
        let task = request(people[1], .manager, .fieldTask, nil)
        // It refers to a person.
        let link = request(people[1], .users, .sharedItem, nil, .put)
        #expect(areTogether(own[0], own[1], own[2]) && areTogether(own[0], lookup, task))
        for whole in [role, membership] {
            #expect(!areTogether(own[0], whole) && !areTogether(whole, own[0]))
            #expect(!areTogether(task, whole) && !areTogether(whole, task) && !areTogether(whole, lookup))
            #expect(!areTogether(link, whole) && !areTogether(whole, link) && areTogether(link, own[0]))
            #expect(areTogether(whole, own[2]) && areTogether(own[2], whole))
        }
        #expect(!areTogether(task, request(people[0], .manager, .fieldTask, nil)))
    }
}
