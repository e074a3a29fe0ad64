import DeviceClient
import LocalCluster
import Model
import Testing

extension FlowTests {
    /// The scenes of the vendor's sample app on two devices of a person: record detail, choice of a state, edit form.
    /// The phone displays them offline and queues its changes, while the tablet changes the same record.
    @Test(.timeLimit(.minutes(10))) func defectScenesWorkOfflineAndOnTwoDevices() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .defectSubmitter, .defectNotifier]
        options.emulators.append(.compass)
        try await withCluster("defect-scenes", options) { cluster in
            let compass = CompassSide(cluster: cluster)
            var phone = try await Self.preparedDevice(cluster, compass)
            var tablet = try await DefectPhone(cluster, "ana@example.com")
            // Online: the phone requests the content of the scenes.
            let requests = try [Self.read, Self.editForm, Self.openForm].map { try phone.handIn($0) }
            let requested = try await Self.finish(requests, on: &phone)
            #expect(requested.allSatisfy { $0.status == .done && $0.messages.isEmpty }, "\(requested)")

            // Offline: it displays them, and queues changes and another read.
            let seen = try Self.checkScenes(phone.details)
            let open = DefectCommand(
                operation: .changeState, record: Self.record, actionName: "Open", fields: ["Owner": "ana"],
                base: ["State": seen.value("State")])
            let queued = try [open, Self.modify("2-Major", over: seen), Self.read].map { try phone.handIn($0) }
            #expect(phone.details.pending == [.init(Self.read)])
            #expect(phone.details.details[.init(Self.read)] == seen)

            // Meanwhile the tablet changes the severity.
            let theirs = try [Self.read, Self.modify("4-Minor", over: seen)].map { try tablet.handIn($0) }
            let done = try await Self.finish(theirs, on: &tablet)
            #expect(done.map(\.status) == [.done, .done])
            #expect(done[0].detail?.value("Severity") == "3-Average", "a read before the change")

            // The phone is online again: its change of the severity is a conflict, with the record as it is now.
            let results = try await Self.finish(queued, on: &phone)
            #expect(results.map(\.status) == [.done, .conflict, .done], "\(results.map(\.messages))")
            let message = "Severity is now '4-Minor', not '3-Average'; requested: '2-Major'"
            #expect(results[1].messages == [message])
            let current = try #require(results[1].detail)
            for detail in [current, try #require(results[2].detail)] {
                #expect(detail.value("Severity") == "4-Minor" && detail.value("State") == "Opened")
                #expect(detail.actions?.map(\.name).contains("Resolve") == true)
            }
            #expect(phone.details.pending.isEmpty)

            // The person makes another decision, and both devices display the result.
            let decision = try phone.handIn(Self.modify("2-Major", over: current))
            let decided = try await Self.finish([decision], on: &phone)
            #expect(decided.map(\.status) == [.done])
            let superseded = phone.details.superseded
            #expect(superseded.count == 2, "the first read of each device")
            for id in superseded { try phone.enqueue(.delete, .defectCommand, id) }
            try await phone.send()
            let last = try tablet.handIn(Self.read)
            let result = try await Self.finish([last], on: &tablet)
            #expect(result.first?.detail?.value("Severity") == "2-Major")
            try await phone.receive()
            #expect(phone.details == tablet.details)
            try await Self.checkHistory(compass)
        }
    }

    private static let record = "SAMPL00000001"
    private static let read = DefectCommand(operation: .read, record: record)
    private static let editForm = DefectCommand(operation: .form, record: record)
    private static let openForm = DefectCommand(operation: .form, record: record, actionName: "Open")

    private static func modify(_ severity: String, over seen: DefectDetail) -> DefectCommand {
        DefectCommand(
            operation: .modify, record: record, fields: ["Severity": severity],
            base: ["Severity": seen.value("Severity")])
    }

    /// Goes online, and waits until commands are finished.
    private static func finish(_ ids: [String], on device: inout DefectPhone) async throws -> [DefectCommand] {
        try await device.send()
        var commands: [DefectCommand] = []
        try await eventually("the commands are finished") {
            try await device.receive()
            commands = try ids.compactMap { try device.command($0) }
            let waiting = commands.filter { $0.status == .waiting }
            return waiting.isEmpty && commands.count == ids.count ? nil : "\(waiting)"
        }
        return commands
    }

    /// Checks what a device displays before any change.
    ///
    /// - Returns: The record.
    private static func checkScenes(_ details: DefectDetails) throws -> DefectDetail {
        let detail = try #require(details.details[.init(read)])
        #expect(detail.value("Headline") == "known 1" && detail.value("State") == "Submitted")
        for name in ["Description", "Project", "Resolution"] { #expect(detail.field(name) != nil, "\(name)") }
        let open = DefectDetail.Action(operation: .changeState, name: "Open", state: "Opened")
        #expect(detail.actions?.contains(open) == true)
        let form = try #require(details.details[.init(editForm)])
        #expect(form.field("Severity")?.choices?.contains("2-Major") == true)
        #expect(form.field("Owner")?.requiredness == .optional && form.field("State")?.requiredness == .readOnly)
        let owner = try #require(details.details[.init(openForm)]?.field("Owner"))
        #expect(owner.requiredness == .mandatory && owner.choices?.contains("ana") == true)
        return detail
    }

    /// Each change once, in order, and no session left.
    private static func checkHistory(_ compass: CompassSide) async throws {
        let rows = try await compass.history().filter { $0.headline == "known 1" }
        #expect(rows.map(\.action) == ["Submit", "Modify", "Open", "Modify"])
        #expect(rows.map(\.user) == ["bo", "ana", "ana", "ana"])
        let severities = rows.compactMap { $0.changes["Severity"] }
        #expect(severities == ["3-Average", "4-Minor", "2-Major"])
        let sessions = try await compass.openSessions()
        #expect(sessions == 0)
    }
}

extension DefectDetail {
    fileprivate func field(_ name: String) -> Field? { fields?.first { $0.name == name } }

    /// The value of a field; empty without one.
    fileprivate func value(_ name: String) -> String { field(name)?.value ?? "" }
}
