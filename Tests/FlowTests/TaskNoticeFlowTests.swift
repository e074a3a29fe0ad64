import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// A manager assigns, changes and deletes tasks, while `task-fan-out` and the relay are killed: the assignee gets
    /// each notice once, and the manager, who has tasks too, gets none.
    @Test(.timeLimit(.minutes(15))) func taskNoticesArriveOnceDespiteKills() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .taskFanOut]
        try await withCluster("task-notices", options) { cluster in
            try await cluster.runCommand([
                "environment", "add", "outside", "--domain", "example.com", "--issuer", cluster.identityURL,
                "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
            ])
            var boss = try await DefectPhone(cluster, "boss@example.com")
            let ana = try await DefectPhone(cluster, "ana@example.com")
            for phone in [boss.phone, ana.phone] {
                try await eventually("the gateway has the environment") {
                    let status = try await phone.status()
                    return status == 200 ? nil : "\(status)"
                }
            }
            let manager = boss.phone
            let people = [try await Self.person(manager), try await Self.person(ana.phone)]
            try await Self.makeManager(manager)
            let tasks = (0..<20).map { (id: UUID(), assignee: people[$0 % 2]) }
            let parts: [LocalCluster.Part] = [.taskFanOut, .relay]

            for (number, task) in tasks.enumerated() {
                let fields = FieldTask(title: "Pipe \(number)", assignee: task.assignee)
                try boss.enqueue(.put, .fieldTask, task.id, fields, in: .manager)
            }
            async let kills: Void = Killer(cluster: cluster, parts: parts, seed: 31, pause: .seconds(1)).kill(3)
            try await boss.send()
            try await Self.expectNotices(ana, ["task-assigned": 10])
            try await kills

            for (number, task) in tasks.enumerated() {
                try boss.enqueue(.patch, .fieldTask, task.id, ["title": "Tube \(number)"], in: .manager)
            }
            async let more: Void = Killer(cluster: cluster, parts: parts, seed: 32, pause: .seconds(1)).kill(3)
            try await boss.send()
            try await Self.expectNotices(ana, ["task-assigned": 10, "task-changed": 10])
            try await more

            for task in tasks { try boss.enqueue(.delete, .fieldTask, task.id, in: .manager) }
            async let last: Void = Killer(cluster: cluster, parts: parts, seed: 33, pause: .seconds(1)).kill(3)
            try await boss.send()
            try await Self.expectNotices(ana, ["task-assigned": 10, "task-changed": 10, "task-removed": 10])
            try await last
            try await eventually("the manager's tasks are deleted") {
                let left = try await manager.read().filter { $0.kind == Kind.fieldTask.rawValue }
                return left.isEmpty ? nil : "\(left.count)"
            }
            let own = try await manager.read().filter { $0.kind == Kind.notice.rawValue }
            #expect(own.isEmpty, "\(own)")
        }
    }

    /// Makes a person a manager, and waits until their device may open `/manager`.
    static func makeManager(_ phone: IntegrationPhone) async throws {
        try await phone.cluster.runCommand(["environment", "role", "manager", phone.email])
        try await eventually("the manager opens /manager") {
            let response = try await phone.client.send(
                Request("GET", phone.cluster.gatewayURL + "/v1/realms", headers: phone.headers))
            let text = String(decoding: response.body, as: UTF8.self)
            return text.contains("\"/manager\"") ? nil : text
        }
    }

    /// Waits until a person has these numbers of notices by code.
    static func expectNotices(_ phone: DefectPhone, _ expected: [String: Int]) async throws {
        try await eventually("the notices are \(expected)", within: .seconds(120)) {
            let codes = try await phone.objects(.notice).values.compactMap { $0["code"] as? String }
            let found = Dictionary(codes.map { ($0, 1) }, uniquingKeysWith: +)
            return found == expected ? nil : "\(found)"
        }
    }
}
