import Foundation
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// `examples/inspections`: classes and data of a Realm app become own kinds, and a worker of their topic writes the
    /// receipt of each inspection once, although it is killed in the middle of its requests.
    @Test(.timeLimit(.minutes(20)), arguments: ["worker.py", "InspectionWorker"])
    func theWorkerOfAnOwnTopicWritesEachReceiptOnce(worker: String) async throws {
        let app = ExampleApp(name: "inspections/app")
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway]
        try app.configure(&options)
        options.arguments[.broker] = ["--topic", "own.outside.inspections:3"]
        try await withCluster("inspections", options) { try await run(worker, $0, app) }
    }

    private static let email = "emp001@demo.example"
    private static let example = projectRoot.appendingPathComponent("examples/inspections").path
    /// A picture of one pixel.
    private static let picture = Data(
        base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9aw"
            + "AAAABJRU5ErkJggg==")

    /// - Parameter worker: The worker in Python or in Swift.
    private func run(_ worker: String, _ cluster: LocalCluster, _ app: ExampleApp) async throws {
        let key = try await cluster.addIntegration(people: ["emp001", "emp002"], domain: "demo.example")
        func program(_ name: String, _ arguments: String...) -> ClusterProcess.Command {
            let isPython = name.hasSuffix(".py")
            return ClusterProcess.Command(
                executable: isPython
                    ? projectRoot.appendingPathComponent(".build/inspections/bin/python3").path
                    : LocalCluster.executables + "/" + name,
                arguments: (isPython ? ["\(Self.example)/\(name)"] : []) + arguments,
                environment: [
                    "GATEWAY_URL": cluster.gatewayURL, "FIELDPOST_KEY": key,
                    "FIELDPOST_KAFKA_BROKERS": cluster.brokers,
                ], logPath: cluster.folder.path + "/\(name).log")
        }
        try await cluster.runCommand(["schema", "apply", "outside", "\(Self.example)/kinds.yaml"])
        try await cluster.runCommand(["environment", "invite", "--all"])
        let phone = try await IntegrationPhone(cluster, Self.email)
        try await eventually("the gateway has the environment") {
            let status = try await phone.status()
            return status == 200 ? nil : "\(status)"
        }
        // The program writes a file into the export.
        let export = cluster.folder.path + "/export"
        try FileManager.default.copyItem(atPath: Self.example + "/export", toPath: export)
        try await migrate(cluster, program("migrate.py", "photos", export))
        let migrated = try await phone.read()
        let inspection = try #require(migrated.first { $0.kind == "Inspection" })
        #expect((inspection.fields["photos"] as? [String])?.count == 1)
        #expect(Set(migrated.map(\.kind)).isSuperset(of: ["Site", "Part", "Finding", "Measurement", "Comment"]))
        let worker = program(worker, "outside")
        try await app.withPage(cluster, of: Self.email, in: "outside") { browser, page in
            try await expectReceiptInApp(browser, page, cluster.onboardingURL + "/app/", worker)
        }
        try await expectReceipts(of: inspection.id, on: phone, cluster, worker: worker)
    }

    /// The migrated inspection is sent in the app, which then offers its receipt.
    private func expectReceiptInApp(
        _ browser: Browser, _ page: Browser.Page, _ address: String, _ worker: ClusterProcess.Command
    ) async throws {
        let item = "document.querySelector('#list li')"
        try await browser.wait("\(item)?.textContent.includes('Harbour')", on: page)
        try await browser.wait("\(item).querySelector('img')?.naturalWidth === 64", on: page)
        // The inspection is displayed from the store, too.
        try await browser.go(to: address, on: page)
        try await browser.wait("\(item)?.textContent.includes('Harbour')", on: page)
        try await browser.wait("\(item).querySelector('img')?.naturalWidth === 64", on: page)
        _ = try await browser.value("\(item).querySelector('button').click()", on: page)
        let process = try ClusterProcess(worker)
        defer { process.kill9() }
        try await browser.wait("\(item).querySelector('button')?.textContent === 'Receipt'", on: page)
    }

    /// Translates the classes, and imports the export's objects and photos.
    private func migrate(_ cluster: LocalCluster, _ photos: ClusterProcess.Command) async throws {
        let folder = cluster.folder.path
        let kinds = try await cluster.runCommand(["schema", "import", "realm", Self.example + "/classes.json"])
        let names = ["Site", "Equipment", "Part", "Checklist", "Inspection", "Finding", "Measurement", "Comment"]
        #expect(names.allSatisfy { kinds.contains("\n  \($0):\n") }, "\(kinds)")
        let conversion = Process()
        conversion.executableURL = URL(filePath: photos.executable)
        conversion.arguments = [Self.example + "/migrate.py", "objects", Self.example + "/export"]
        let output = Pipe()
        conversion.standardOutput = output
        try conversion.run()
        let lines = try #require(try output.fileHandleForReading.readToEnd())
        conversion.waitUntilExit()
        #expect(conversion.terminationStatus == 0)
        try lines.write(to: URL(filePath: folder + "/objects.jsonl"))
        try await cluster.runCommand(["import", "objects", "--environment", "outside", folder + "/objects.jsonl"])
        let upload = try ClusterProcess(photos)
        defer { upload.kill9() }
        try await eventually("the photos are uploaded") { upload.isRunning ? upload.logTail() : nil }
        #expect(upload.end == .exited(status: 0), "\(upload.logTail())")
    }

    /// - Parameter migrated: An inspection that was sent.
    private func expectReceipts(
        of migrated: String, on phone: IntegrationPhone, _ cluster: LocalCluster, worker: ClusterProcess.Command
    ) async throws {
        var process = try ClusterProcess(worker)
        defer { process.kill9() }
        var sent = [migrated]
        for kill in 0..<4 {
            let done = try await receipts(on: phone).count
            for _ in 0..<4 { sent.append(try await send(from: phone)) }
            try await eventually("a receipt before kill \(kill)") {
                try await receipts(on: phone).count > done ? nil : process.logTail()
            }
            // The worker is in the middle of a request, or between two. The gateway completes the request afterwards.
            cluster.freeze(.gateway)
            process.kill9()
            cluster.thaw(.gateway)
            process = try ClusterProcess(worker)
        }
        let expected = Set(sent)
        try await eventually("all have receipts") {
            let found = try await receipts(on: phone)
            return Set(found.keys) == expected ? nil : "\(found.count) of \(expected.count): \(process.logTail())"
        }
        try await expectReasonAndNewReceipt(migrated, on: phone, process)
        // One receipt for each inspection, and that of the other person.
        try await eventually("all are named") {
            let named = try documents(in: cluster)
            return named.count == sent.count + 1 ? nil : "\(named.count) of \(sent.count + 1)"
        }
        #expect(try documents(in: cluster).isSuperset(of: try await receipts(on: phone).values))
        #expect(process.end == nil && cluster.fallen.isEmpty, "\(cluster.fallen) \(process.logTail())")
    }

    /// Checks that a photo that is missing has a reason on the phone, and that a new version gets a new receipt.
    private func expectReasonAndNewReceipt(
        _ changed: String, on phone: IntegrationPhone, _ process: ClusterProcess
    ) async throws {
        let first = try await receipts(on: phone)[changed]
        let failed = UUID().uuidString.lowercased()
        try await put(failed, photo: UUID().uuidString.lowercased(), on: phone)
        try await phone.write("patch", changed, #"{"answers": {"Is it <safe> & dry?": "no"}}"#, kind: "Inspection")
        try await eventually("the reason and the new receipt") {
            let found = try await phone.read().first { $0.id == failed }?.fields["problem"] as? String
            let second = try await receipts(on: phone)[changed]
            return found == "Photo 1 was not uploaded." && second != nil && second != first
                ? nil : "\(found ?? "") \(process.logTail())"
        }
    }

    private func send(from phone: IntegrationPhone) async throws -> String {
        let (id, photo) = (UUID().uuidString.lowercased(), UUID().uuidString.lowercased())
        try await phone.upload(photo, try #require(Self.picture))
        try await put(id, photo: photo, on: phone)
        return id
    }

    private func put(_ id: String, photo: String, on phone: IntegrationPhone) async throws {
        try await phone.write(
            "put", id,
            """
            {"plannedAt": "2026-11-28T09:00:00Z", "state": "sent", "answers": {"Is the rope intact?": "yes"},
            "photos": ["\(photo)"]}
            """, kind: "Inspection")
    }

    /// Returns the ids of the receipts, by inspection.
    private func receipts(on phone: IntegrationPhone) async throws -> [String: String] {
        let receipts = try await phone.read().filter { $0.kind == "Inspection" }.compactMap { inspection in
            (inspection.fields["receipt"] as? String).map { (inspection.id, $0) }
        }
        return Dictionary(uniqueKeysWithValues: receipts)
    }

    /// Returns the ids of the documents to which objects refer.
    private func documents(in cluster: LocalCluster) throws -> Set<String> {
        var connection = try Connection(cluster.conninfo)
        return Set(
            try connection.run(
                """
                SELECT id::text FROM blob.content c WHERE type = 'application/pdf' AND EXISTS (
                    SELECT FROM blob.reference r WHERE r.environment_id = c.environment_id AND r.blob_id = c.id)
                """
            ).decode(String.self))
    }
}
