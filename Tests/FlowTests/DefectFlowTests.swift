import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// A person's commands about defects, handed in by a device that was offline, while what carries them is killed.
    @Test(.timeLimit(.minutes(20))) func defectCommandsAreExecutedOnceDespiteKills() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .defectSubmitter, .defectNotifier]
        options.emulators.append(.compass)
        // An attempt of a process that was killed is taken over after nine calls' time.
        options.variables[.defectSubmitter, default: [:]]["FIELDPOST_BACKEND_CALL_MAX"] = "1s"
        try await withCluster("defects", options) { cluster in
            let compass = CompassSide(cluster: cluster)
            var ana = try await Self.preparedDevice(cluster, compass)
            // Offline: new defects, and three things in a row that are done with each of those there are.
            let (new, known) = (20, 10)
            var ids = try (1...new).map { number in
                try ana.handIn(
                    DefectCommand(operation: .create, fields: ["Headline": "new \(number)", "Severity": "3-Average"]))
            }
            for number in 1...known { ids += try Self.steps(of: number, &ana) }
            let reads = try Self.reads(&ana)
            ids += reads
            // Calls that take a while are those in which a process dies.
            try await compass.post("/sandbox/switches", #"{"latencyMs": 40}"#)
            async let kills: Void = Killer(
                cluster: cluster, parts: [.defectSubmitter, .relay, .defectSubmitter], seed: 7, pause: .seconds(1)
            ).kill(9)
            try await ana.send()
            try await kills
            let phone = ana
            try await eventually("all of it is done", within: .seconds(180)) {
                let commands = try await phone.objects(.defectCommand)
                let left = ids.filter { commands[$0]?["status"] as? String != "done" }
                return left.isEmpty ? nil : "\(left.count) left, of them \(left.prefix(3).compactMap { commands[$0] })"
            }
            try await Self.check(compass, new: new, known: known)
            try await Self.checkReads(reads, phone)
            try await eventually("the device shows its changes long before the tracker's next poll") {
                let headlines = try await phone.objects(.defect).values.compactMap { $0["headline"] as? String }
                let missing = (1...new).filter { !headlines.contains("new \($0)") }
                return missing.isEmpty ? nil : "\(missing)"
            }
            try await Self.delete("SAMPL00000010", &ana)
            try await Self.checkOwnLogin(cluster, compass, phone)
        }
    }

    /// A mirrored defect is deleted from a device.
    private static func delete(_ record: String, _ ana: inout DefectPhone) async throws {
        let command = try ana.handIn(DefectCommand(operation: .delete, record: record))
        try await ana.send()
        let phone = ana
        try await eventually("the defect is deleted") {
            let status = try await phone.objects(.defectCommand)[command]?["status"] as? String
            let isShown = try await phone.objects(.defect).values.contains { $0["record"] as? String == record }
            return status == "done" && !isShown ? nil : "\(status ?? "no status"), shown: \(isShown)"
        }
    }

    /// The environment's account is removed: afterwards the person's own login is polled, and no notice is repeated.
    private static func checkOwnLogin(
        _ cluster: LocalCluster, _ compass: CompassSide, _ phone: DefectPhone
    ) async throws {
        let before = try await phone.objects(.notice).count
        try await cluster.runCommand([
            "environment", "defects", "add", "outside", "--no-account", "--poll-interval", "5",
        ])
        try await compass.post(
            "/sandbox/changes",
            #"[{"record": "SAMPL00000001", "user": "bo", "action": "Modify", "fields": {"Severity": "1-Critical"}}]"#)
        try await eventually("the person's own login causes the notice", within: .seconds(60)) {
            let notices = try await phone.objects(.notice).values
            let texts = notices.compactMap { $0["text"] as? String }
            return texts.contains("SAMPL00000001 (known 1) has been modified") ? nil : "\(texts)"
        }
        #expect(try await phone.objects(.notice).count == before + 1)
        try await eventually("no query is left") {
            let queries = try await compass.openQueries()
            return queries == 0 ? nil : "\(queries)"
        }
    }

    /// Adds an environment with ten defects of Bo's, and returns a device of Ana, whose login is checked.
    static func preparedDevice(_ cluster: LocalCluster, _ compass: CompassSide) async throws -> DefectPhone {
        try await prepare(cluster, compass)
        let ana = try await DefectPhone(cluster, "ana@example.com")
        try await eventually("the gateway has the environment") {
            let status = try await ana.phone.status()
            return status == 200 ? nil : "\(status)"
        }
        try await ana.storeLogin("ana", "secret-of-ana")
        try await eventually("the login is checked") {
            let accounts = try await ana.objects(.defectAccount).values
            return accounts.first?["status"] as? String == "good" ? nil : "\(accounts)"
        }
        return ana
    }

    private static func prepare(_ cluster: LocalCluster, _ compass: CompassSide) async throws {
        try await compass.post(
            "/sandbox/organisation",
            #"{"users": [{"name": "ana", "password": "secret-of-ana"}, {"name": "bo", "password": "secret-of-bo"}]}"#)
        let records = (1...10).map {
            #"{"user": "bo", "fields": {"Headline": "known \#($0)", "Severity": "3-Average"}}"#
        }
        try await compass.post("/sandbox/changes", "[\(records.joined(separator: ","))]")
        let people = cluster.folder.path + "/people.json"
        try Data(#"[{"email": "ana@example.com", "reference": {}}]"#.utf8).write(to: URL(filePath: people))
        try await cluster.runCommand([
            "environment", "add", "outside", "--domain", "example.com", "--issuer", cluster.identityURL, "--audience",
            "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none", "--people", people,
        ])
        let logins = cluster.folder.path + "/logins.json"
        try Data(#"{"ana@example.com": "ana"}"#.utf8).write(to: URL(filePath: logins))
        // The emulators' service accounts have the same password.
        try await cluster.runCommand([
            "environment", "defects", "add", "outside", "--server", cluster.compassURL, "--repository", "CCMRepo",
            "--user-database", "SAMPL", "--user", "fieldpost", "--password-from", LocalCluster.passwordVariable,
            "--poll-interval", "3600",
        ])
        try await cluster.runCommand(["environment", "defects", "logins", "outside", "--file", logins])
    }

    /// The actions on a defect, in order.
    private static func steps(of number: Int, _ phone: inout DefectPhone) throws -> [String] {
        let record = "SAMPL" + String(String(100_000_000 + number).dropFirst())
        return [
            try phone.handIn(
                DefectCommand(
                    operation: .modify, record: record, fields: ["Severity": "2-Major"],
                    base: ["Severity": "3-Average", "State": "Submitted"])),
            try phone.handIn(
                DefectCommand(
                    operation: .changeState, record: record, actionName: "Open", fields: ["Owner": "ana"],
                    base: ["State": "Submitted"])),
            try phone.handIn(
                DefectCommand(
                    operation: .modify, record: record, fields: ["Severity": "4-Minor"],
                    base: ["Severity": "2-Major", "State": "Opened"])),
        ]
    }

    /// A record, and a form of it, that are read after the actions on it.
    private static func reads(_ phone: inout DefectPhone) throws -> [String] {
        [
            try phone.handIn(DefectCommand(operation: .read, record: "SAMPL00000001")),
            try phone.handIn(DefectCommand(operation: .form, record: "SAMPL00000001", actionName: "Resolve")),
        ]
    }

    private static func checkReads(_ ids: [String], _ phone: DefectPhone) async throws {
        let commands = try await phone.objects(.defectCommand)
        let fields = ids.map { id in
            let detail = commands[id]?["detail"] as? [String: Any]
            return detail?["fields"] as? [[String: Any]] ?? []
        }
        let severity = fields[0].first { $0["name"] as? String == "Severity" }?["value"] as? String
        #expect(severity == "4-Minor", "the read comes after the person's earlier commands")
        let mandatory = fields[1].filter { $0["requiredness"] as? String == "mandatory" }.map { $0["name"] as? String }
        #expect(mandatory == ["Headline", "Severity", "Resolution"])
    }

    /// No record twice, nothing done twice, no session left.
    private static func check(_ compass: CompassSide, new: Int, known: Int) async throws {
        let history = try await compass.history()
        for number in 1...new {
            let rows = history.filter { $0.headline == "new \(number)" }
            #expect(rows.map(\.action) == ["Submit"] && rows.first?.user == "ana", "new \(number): \(rows)")
        }
        for number in 1...known {
            let rows = history.filter { $0.headline == "known \(number)" }
            #expect(rows.map(\.action) == ["Submit", "Modify", "Open", "Modify"], "known \(number): \(rows)")
            #expect(rows.map { $0.changes["Severity"] } == ["3-Average", "2-Major", nil, "4-Minor"])
        }
        let open = try await compass.openSessions()
        #expect(open == 0)
    }
}
