// Publishes changed objects to Kafka in position order; one instance is the leader, the others are standbys. Also
// removes old, unused data.

import Essentials
import Kafka
import KeyedWorker
import Metrics
import ObjectStore
import ServiceRuntime
import ServiceSettings

await serve("change-relay", settings: Settings.all) { context in
    let configuration = context.configuration
    let (conninfo, brokers) = (try configuration.text(.databaseURL), try configuration.text(.kafkaBrokers))
    let properties = try configuration.properties(under: "kafka.", problem: Property.problem)
    let pageCountMax = try configuration.integer(Settings.pageCountMax)
    let keep = try configuration.duration(Settings.compactionKeep)
    let interval = try configuration.duration(Settings.compactionInterval)
    let sweepInterval = try configuration.duration(RetentionSettings.interval)
    let leader = Gauge(label: "fieldpost.leader")
    EnvironmentNameLoader.start(conninfo)
    return [
        .loop("relay") { control in
            leader.record(0)
            var relay = try Relay(
                conninfo: conninfo, brokers: brokers, properties: properties, logger: control.logger,
                pageCountMax: pageCountMax)
            control.whenStopping(relay.wakeup.signal)
            while !control.isStopping {
                let isLeader = try relay.step(waitMax: AwaitedPositions.pollInterval)
                leader.record(isLeader ? 1 : 0)
                if isLeader { try relay.compact(keep: keep, interval: interval) }
                if let problem = relay.problem { control.impaired(problem) } else { control.progressed() }
                if !isLeader { control.pause(.milliseconds(relay.reachesBrokers ? 500 : 25)) }
            }
        },
        .steps("retention") { logger in
            try Retention(
                conninfo: conninfo, sweeps: RetentionSettings.sweeps(configuration, logger), interval: sweepInterval,
                logger: logger)
        } step: { retention in
            try retention.step()
        },
    ]
}
