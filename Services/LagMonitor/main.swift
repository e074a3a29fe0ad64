// Exports the lag of all consumer groups in messages and seconds, their status, and the deferred keys in PostgreSQL.
// Reads only, except for synthetic probes if `monitor.probe` is set, and for actions of administrators in the console.

import HTTPServer
import Kafka
import KeyedWorker
import Model
import ObjectStore
import ServiceRuntime
import ServiceSettings
import Telemetry

await serve("lag-monitor", settings: Settings.all) { context in
    let configuration = context.configuration
    let (conninfo, brokers) = (try configuration.text(.databaseURL), try configuration.text(.kafkaBrokers))
    let properties = try configuration.properties(under: "kafka.", problem: Property.problem)
    let interval = try configuration.duration(Settings.interval)
    let cluster = try configuration.text(Settings.clusterName)
    let others = try configuration.text(Settings.others) == "true"
    let partitions = try configuration.integer(Settings.partitions)
    let probeEnvironment = try configuration.text(Settings.probe)
    let metrics = context.metrics
    EnvironmentNameLoader.start(conninfo)
    let probe = Component.loop("probe") { control in
        var probe = Probe(through: probeEnvironment, conninfo: conninfo)
        while !control.isStopping {
            if let problem = probe.step(control) { control.impaired(problem) } else { control.progressed() }
            control.pause(interval)
        }
    }
    let board = SnapshotBoard()
    var console: [Component] = []
    if let settings = try ConsoleSettings(configuration) {
        let kafka = ConsoleBrokers(address: brokers, properties: properties)
        console = Console(
            settings, database: conninfo, brokers: kafka, board: board, logger: context.logger
        ).components(
            host: try configuration.text(Settings.consoleHost), port: try configuration.integer(Settings.consolePort),
            tls: try HTTPEdge.TLSFiles(configuration))
    }
    return (probeEnvironment.isEmpty ? [] : [probe]) + console + [
        .loop("lag-monitor") { control in
            var monitor = try Monitor(
                conninfo: conninfo, brokers: brokers, properties: properties, cluster: cluster, others: others,
                partitionCountMax: partitions, board: board, logger: control.logger)
            while !control.isStopping {
                metrics.show(try monitor.step())
                if let problem = monitor.problem { control.impaired(problem) } else { control.progressed() }
                control.pause(interval)
            }
        }
    ]
}
