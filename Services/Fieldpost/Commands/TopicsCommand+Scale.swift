import ArgumentParser
import Kafka
import Model

extension TopicsCommand {
    struct Scale: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give a topic more partitions, so that more workers can share it.",
            discussion: """
                Nothing has to be stopped, drained or published again. Most keys go to other partitions from then on, \
                so for a while two workers may look at the same key: each loads it as it is now, and writes only while \
                it still is so (docs/integrators/topics.md). Running services find the new partitions within \
                seconds, change-relay within five minutes. Kafka cannot take partitions away again.
                """)
        @Argument(help: "The topic.") var name: String
        @Option(help: "How many it has afterwards.") var partitions: Int32
        @Flag(help: "Only say what would be done.") var dryRun = false
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        private static let countMax: Int32 = 1_000

        func validate() throws {
            let topic = try Topic.named(name)
            guard Int(partitions) >= topic.partitions else {
                throw ValidationError("--partitions must be at least \(topic.partitions), as \(name) is declared with")
            }
            guard partitions <= Self.countMax else {
                throw ValidationError("--partitions must be at most \(Self.countMax)")
            }
        }

        func run() throws {
            let admin = try brokers.admin()
            do {
                let metadata = try admin.metadata()
                let found = try Self.partitions(of: name, in: metadata, atLeast: partitions)
                if found < partitions, !dryRun { try admin.setPartitions(of: name, to: partitions) }
                try show(Scaling(topic: name, before: found, after: partitions, isDone: !dryRun))
            } catch let error as KafkaError {
                throw CommandFailure(error)
            }
        }

        /// - Throws: `CommandFailure` where there is no way from what is there to what is wanted.
        private static func partitions(
            of name: String, in metadata: ClusterMetadata, atLeast wanted: Int32
        ) throws -> Int32 {
            guard let found = metadata.topics[name] else {
                throw CommandFailure("the broker does not have \(name): run fieldpost topics apply")
            }
            guard found <= wanted else {
                throw CommandFailure(
                    "\(name) has \(found) partitions, and Kafka takes none away. To have \(wanted): stop change-relay, "
                        + "wait until fieldpost lag --topic \(name) is 0, stop the topic's services, delete the topic, "
                        + "make it anew, and run fieldpost topics republish \(name)")
            }
            return found
        }

        private func show(_ scaling: Scaling) throws {
            if output.json { return try printJSON(scaling) }
            let (before, after) = (scaling.before, scaling.after)
            if before == after { return print("\(name) has \(after) partitions already") }
            print("\(name): \(before) partitions \(dryRun ? "would become" : "became") \(after)")
            let moved = ScaleRule.percentMoved(from: before, to: after)
            print("up to \(after) workers can share it; of keys, about \(moved) % go elsewhere")
            if dryRun { print("nothing was changed") }
        }
    }
}

private struct Scaling: Encodable {
    let topic: String
    let before: Int32
    let after: Int32
    /// Whether it has so many now.
    let isDone: Bool
}
