import ArgumentParser
import Foundation
import HTTPClient
import Postgres
import ServiceSettings

/// `workbench watch`: devices measure their waits while others operate the installation.
struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Measure the longest waits of devices during operations.",
        discussion: """
            Adds the environment `watch`, which stays afterwards. Three devices of it change objects all the time. \
            After each line of the standard input, they must receive changes again; then the line is printed with the \
            longest waits since the previous line, separated by tabs, in seconds: until PostgreSQL had a change, until \
            the device received it, and until another person's device received it. The first line of the output is \
            `ready`.
            """)

    @Option(help: "Address of the realm-gateway.") var gateway: String?
    @Option(help: "Address of the identity provider.") var identity: String?
    @Option(help: "PostgreSQL connection string. (default: FIELDPOST_DATABASE_URL)") var database: String?

    private static let receivedMax = Duration.seconds(180)

    func run() async throws {
        let variable = Setting.databaseURL.variable
        guard let conninfo = database ?? ProcessInfo.processInfo.environment[variable], !conninfo.isEmpty else {
            throw ValidationError("give --database or set \(variable)")
        }
        let client = Client()
        defer { client.shutDown() }
        let pool = try Pool(conninfo, size: 2)
        defer { pool.stop() }
        let setup = DemoSetup(
            pool: pool, environmentName: DeviceWatch.environment,
            identity: IdentitySandbox(client: client, url: DemoAddresses.url(identity, "IDENTITY_URL", default: 8081)),
            backend: nil)
        let gateway = GatewayClient(client: client, url: DemoAddresses.url(gateway, "GATEWAY_URL", default: 8080))
        let devices = try await DeviceWatch.adding(setup, gateways: [gateway])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await devices.run() }
            group.addTask { try await Self.report(on: devices) }
            try await group.next()
            group.cancelAll()
        }
    }

    private static func report(on devices: DeviceWatch) async throws {
        // The read of a line cannot be cancelled.
        let (steps, read) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { read.yield(line) }
            read.finish()
        }
        _ = try await devices.recovery(since: .now, within: receivedMax)
        _ = devices.takeWaits()
        write("ready")
        for await step in steps {
            _ = try await devices.recovery(since: .now, within: receivedMax)
            let waits = devices.takeWaits()
            let texts = ["accepted", "seen", "shared"].map { ScenarioReport.text(waits[$0] ?? 0) }
            write(([step] + texts).joined(separator: "\t"))
        }
    }

    private static func write(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}
