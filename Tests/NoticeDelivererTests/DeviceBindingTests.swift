import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import NoticeDeliverer

/// A device's target ends with the credential of its login.
@Suite(.ownThreads) struct DeviceBindingTests {
    private static let token = String(repeating: "b2", count: 32)

    private func sweep(_ world: borrowing DeliveryWorld) throws {
        var sweep = try DeliverySweep(
            conninfo: world.acme.conninfo, retention: .seconds(86_400), metrics: DeliveryMetrics())
        _ = try sweep.step()
    }

    private func registered(_ world: inout DeliveryWorld) throws -> Int64 {
        try world.acme.connection.run("SELECT count(*) FROM delivery.device")[0].decode(Int64.self)
    }

    @Test func revokedDeviceGetsNothing() async throws {
        var world = try DeliveryWorld()
        let phone = try world.device(.apns, Self.token)
        try world.choose(DeliveryChoice(email: true, devices: [phone]))
        // One notice waits for a retry, the other comes after the revocation.
        try world.receivers.set(.init([Self.token: [.status(503, "ServiceUnavailable")]]))
        try world.notify("one")
        #expect(try await world.settle().wait != nil)
        try world.revokeDevices()
        try world.notify("two")
        #expect(try await world.settle().wait == nil)
        #expect(try world.choice() == DeliveryChoice(email: true))
        #expect(try world.receivers.received().count { $0.kind == "apns" } == 1)
        #expect(
            try world.ledger() == [
                "apns dropped 1 APNs returned 503 ServiceUnavailable", "email sent 0", "email sent 0",
            ])
        #expect(try registered(&world) == 0)
    }

    /// Without another notice, the sweep requests the removal, once.
    @Test func sweepRemovesRevokedDevice() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.token)]))
        try sweep(world)
        #expect(try world.parked().isEmpty && registered(&world) == 1)
        try world.revokeDevices()
        try sweep(world)
        let key = "/users/ana@example.com/DeliveryChoice/\(world.person.text)"
        #expect(try world.parked() == [key])
        // A dead-lettered key is left to the operator.
        try world.acme.connection.run("UPDATE pipeline.parked SET is_dead = true")
        try sweep(world)
        #expect(
            try world.acme.connection.run("SELECT is_dead FROM pipeline.parked").decode(Bool.self) == [true])
        try await world.settle()
        #expect(try world.choice() == DeliveryChoice() && registered(&world) == 0)
    }

    /// The changes by which a device's credential ends.
    @Test(arguments: [
        "UPDATE onboarding.refresh_token SET revoked_at = now()", "DELETE FROM onboarding.refresh_token",
        "UPDATE access.person SET issuer = NULL, subject = NULL", "UPDATE access.person SET subject = 'another'",
        "UPDATE access.provider SET issuer = 'https://other'",
    ])
    func endedLoginEndsTarget(statement: String) async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.token)]))
        try world.acme.connection.runScript(statement)
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().isEmpty && world.choice()?.devices == [])
    }

    /// An id of another person's device, or of none, is no credential.
    @Test func foreignDeviceIsRemoved() async throws {
        var world = try DeliveryWorld()
        let device = try world.logIn()
        try world.switchPerson(to: "bo@example.com")
        let unknown = String(repeating: "0", count: 64)
        try world.choose(
            DeliveryChoice(devices: [
                DeviceTarget(service: .apns, token: Self.token, device: device),
                DeviceTarget(service: .fcm, token: "t", device: unknown),
            ]))
        try world.notify("one")
        #expect(try await world.settle().wait == nil)
        #expect(try world.receivers.received().isEmpty && world.choice()?.devices == [])
    }

    /// Another person logs in on the phone, without a logout before.
    @Test func tokenBelongsToItsNewestLogin() async throws {
        var world = try DeliveryWorld()
        try world.choose(DeliveryChoice(devices: [try world.device(.apns, Self.token)]))
        try world.notify("before")
        try await world.settle()
        let ana = world.person
        try world.switchPerson(to: "bo@example.com")
        let phone = try world.device(.apns, Self.token)
        try world.choose(DeliveryChoice(devices: [phone]))
        try world.notify("for Bo")
        try await world.settle()
        #expect(try world.choice()?.devices == [phone])
        try world.returnPerson(ana, "ana@example.com")
        try world.notify("for Ana")
        try await world.settle()
        #expect(try world.choice()?.devices == [])
        let texts = try world.receivers.received().map(\.text)
        #expect(texts.count == 2 && texts[0].contains("before") && texts[1].contains("for Bo"))
    }

    /// Triggers maintain the rows.
    @Test func registeredDevicesFollowTheChoice() throws {
        var world = try DeliveryWorld()
        var devices: [DeviceTarget] = []
        for number in 10..<13 {
            devices.append(try world.device(.apns, String(Self.token.dropLast(2)) + "\(number)"))
        }
        for count in [3, 1, 2, 0] {
            try world.choose(DeliveryChoice(devices: Array(devices.prefix(count))))
            #expect(try registered(&world) == Int64(count))
        }
        try world.choose(DeliveryChoice(devices: devices))
        try world.acme.connection.run("DELETE FROM store.object WHERE kind = \(Kind.deliveryChoice)")
        #expect(try registered(&world) == 0)
    }
}
