import ArgumentParser
import Kafka
import Model

extension TopicsCommand {
    struct Scale: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Increase the number of partitions of a topic.",
            discussion: """
                More workers can then share the topic. Services keep running. Most keys move to other partitions, so \
                for a short time two workers may process the same key: each loads its current state, and writes \
                conditionally (docs/integrators/topics.md). Services detect the new partitions within seconds, \
                change-relay within five minutes. Kafka cannot remove partitions.
                """)
        @Argument(help: "Topic to scale.") var name: String
        @Option(help: "New number of partitions.") var partitions: Int32
        @Flag(help: "Print the effect without changing the topic.") var dryRun = false
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        private static let countMax: Int32 = 1_000

        func validate() throws {
            let topic = try Topic.named(name)
            guard Int(partitions) >= topic.partitions else {
                throw ValidationError(
                    "--partitions must be at least \(topic.partitions), the declared number of \(name), not "
                        + "\(partitions)")
            }
            guard partitions <= Self.countMax else {
                throw ValidationError("--partitions must be at most \(Self.countMax), not \(partitions)")
            }
        }

        func run() throws {
            let admin = try brokers.admin()
            do {
                let metadata = try admin.metadata()
                let current = try Self.partitions(of: name, in: metadata, atLeast: partitions)
                if current < partitions, !dryRun { try admin.setPartitions(of: name, to: partitions) }
                try show(Scaling(topic: name, before: current, after: partitions, isDone: !dryRun))
            } catch let error as KafkaError {
                throw CommandFailure(error)
            }
        }

        /// - Throws: `CommandFailure` if the topic does not exist or has more partitions.
        private static func partitions(
            of name: String, in metadata: ClusterMetadata, atLeast count: Int32
        ) throws -> Int32 {
            guard let current = metadata.topics[name] else {
                throw CommandFailure("topic \(name) does not exist at the broker: run fieldpost topics apply")
            }
            guard current <= count else {
                throw CommandFailure(
                    "\(name) has \(current) partitions, and Kafka cannot remove any. To have \(count): stop "
                        + "change-relay, wait until fieldpost lag --topic \(name) is 0, stop the topic's services, "
                        + "delete and recreate the topic, and run fieldpost topics republish \(name)")
            }
            return current
        }

        private func show(_ scaling: Scaling) throws {
            if output.json { return try printJSON(scaling) }
            let (before, after) = (scaling.before, scaling.after)
            if before == after { return print("\(name) has \(after) partitions already") }
            print("\(name): \(before) partitions \(dryRun ? "would become" : "became") \(after)")
            let moved = ScaleRule.percentMoved(from: before, to: after)
            print("up to \(after) workers can share it; about \(moved) % of the keys change their partition")
            if dryRun { print("nothing was changed") }
        }
    }
}

private struct Scaling: Encodable {
    let topic: String
    let before: Int32
    let after: Int32
    /// Whether the topic was changed.
    let isDone: Bool
}
