import ArgumentParser
import Foundation
import LocalCluster
import Model

/// `workbench rehearse`: operations on each service while demos run.
struct RehearseCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "Stop, replace, scale and kill each service during demos.",
        discussion: """
            Starts a cluster. Each service is stopped for a while, replaced, scaled from one instance to several and \
            back, and killed. With --before, the cluster begins with the earlier release: the schema is migrated, and \
            each service is replaced by the new build. Meanwhile one demo follows another, and three devices measure \
            how long they wait. The exit status is 1 if data were lost or duplicated, or if a service did not stop or \
            recover.

            Columns, in seconds: ended, until the process had ended; ready, from its start until it was ready with its \
            partitions; the longest waits of the devices: accepted, until PostgreSQL had a change; seen, until the \
            device received it; shared, until another person's device received it; lag, the age of the oldest message \
            that a group had not processed; drained, until no group lagged.
            """)

    @Option(
        name: .customLong("service"),
        help: ArgumentHelp("Only operate on this service; may be repeated.", valueName: "name"))
    var names: [String] = []
    @Option(help: "People per demo.") var people = 6
    @Option(help: "Number of instances to scale a service to.") var instances = 4
    @Option(help: "Seconds for which a service is stopped.") var stop = 3
    @Option(help: ArgumentHelp("Folder of the earlier release's executables, to begin with.", valueName: "folder"))
    var before: String?
    @Option(help: ArgumentHelp("Folder of that release's schema files.", valueName: "folder"))
    var schemaBefore: String?
    @OptionGroup var output: ScenarioOptions

    private static let monitor = LocalCluster.Part(Services.lagMonitor)
    /// Latency of SAP, so that entries are in flight for long.
    private static let switches = #"{"latencyMs":200}"#
    private static let drainedMax = Duration.seconds(180)

    func validate() throws {
        guard (1...1_000).contains(people) else { throw ValidationError("--people is 1…1000") }
        guard (2...8).contains(instances) else { throw ValidationError("--instances is 2…8") }
        guard (0...600).contains(stop) else { throw ValidationError("--stop is 0…600 seconds") }
        guard (before == nil) == (schemaBefore == nil) else {
            throw ValidationError("--before and --schema-before belong together")
        }
        for folder in [before, schemaBefore].compactMap(\.self)
        where !FileManager.default.fileExists(atPath: folder) {
            throw ValidationError("there is no folder \(folder)")
        }
        let known = Services.all.map(\.name)
        for name in names where !known.contains(name) {
            throw ValidationError("--service \(name): there are \(known.joined(separator: ", "))")
        }
    }

    private var parts: [LocalCluster.Part] {
        Services.all.filter { names.isEmpty || names.contains($0.name) }.map { LocalCluster.Part($0) }
    }

    func report() async throws -> ScenarioReport {
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services
        options.idle = parts.flatMap { part in (2...instances).map { part.instance($0) } }
        options.emulators.append(.compass)
        // The demo's entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        options.variables[Self.monitor, default: [:]]["FIELDPOST_MONITOR_INTERVAL"] = "500ms"
        if let before, let schemaBefore { (options.executables, options.schemaFolder) = (before, schemaBefore) }
        return try await ScenarioStage.run("rehearse", options) { try await run(on: $0) }
    }

    private func run(on stage: ScenarioStage) async throws -> ScenarioReport {
        let devices = try await DeviceWatch.adding(on: stage)
        stage.console.log("the services are ready; starting the first demo")
        let lag = LagWatch(Self.monitor, on: stage)
        let demos = RehearsalDemos(stage: stage, people: people)
        try await stage.sap.setSwitches(Self.switches)
        let watching = [Task { try await devices.run() }, Task { try await lag.run() }]
        defer { for task in watching { task.cancel() } }
        let working = Task { await demos.run() }
        defer { working.cancel() }
        try await waitUntil("the first demo's entries are being written", within: .seconds(900)) {
            await demos.hasStarted
        }
        var report = ScenarioReport(columns: RehearsalOperations.columns)
        let operations = RehearsalOperations(
            stage: stage, devices: devices, lag: lag, instanceCount: instances, stopTime: .seconds(stop),
            build: before == nil ? nil : LocalCluster.executables)
        for (step, operate) in operations.all(on: parts) {
            if await demos.hasFailed { break }
            report.steps.append(try await operations.perform(step, operate))
        }
        await demos.endAfterCurrent()
        let failures = await working.value
        report.add("demos", await demos.count)
        report.differences += failures
        guard failures.isEmpty else { return report }
        let last = devices.counts
        try await waitUntil("the watched devices have received all changes", within: Self.drainedMax) {
            devices.counts.seen > last.seen && devices.counts.shared > last.shared
        }
        report.add("notes of the watched devices, all received", devices.counts.seen + devices.counts.shared)
        for column in RehearsalOperations.columns {
            report.add("longest: \(column)", report.steps.compactMap { $0.values[column] }.max() ?? 0, "s")
        }
        return report
    }
}
