// Tells how far every consumer group is behind, in messages and in seconds, how it fares, and what waits in PostgreSQL.
// It reads only, but for the notes of a probe where an environment is named for them, and for what administrators do on
// its console where there is one.

import Telemetry
import ServiceSettings
import Essentials
import HTTPServer
import Kafka
import KeyedWorker
import Model
import ServiceRuntime

await serve("lag-monitor", settings: Settings.all) { context in
    let configuration = context.configuration
    let (conninfo, brokers) = (try configuration.text(.databaseURL), try configuration.text(.kafkaBrokers))
    let properties = try configuration.properties(under: "kafka.", problem: Property.problem)
    let interval = try configuration.duration(Settings.interval)
    let cluster = try configuration.text(Settings.clusterName)
    let others = try configuration.text(Settings.others) == "true"
    let partitions = try configuration.integer(Settings.partitions)
    let probed = try configuration.text(Settings.probe)
    let metrics = context.metrics
    let probe = Component.worker(
        "probe", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal
    ) { control in
        var probe = Probe(through: probed, conninfo: conninfo)
        while !control.isStopping {
            if let problem = probe.step(control) { control.impaired(problem) } else { control.progressed() }
            control.pause(interval)
        }
    }
    let board = LookBoard()
    var console: [Component] = []
    if let settings = try ConsoleSettings(configuration) {
        console = Console(settings, database: conninfo, board: board, logger: context.logger).components(
            host: try configuration.text(Settings.consoleHost), port: try configuration.integer(Settings.consolePort),
            tls: try HTTPEdge.TLSFiles(configuration))
    }
    return (probed.isEmpty ? [] : [probe]) + console + [
        .worker("lag-monitor", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var monitor = try Monitor(
                conninfo: conninfo, brokers: brokers, properties: properties, cluster: cluster, others: others,
                placeMax: partitions, board: board, logger: control.logger)
            while !control.isStopping {
                metrics.show(try monitor.step())
                if let problem = monitor.problem { control.impaired(problem) } else { control.progressed() }
                control.pause(interval)
            }
        }
    ]
}
