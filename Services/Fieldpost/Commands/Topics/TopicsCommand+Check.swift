import ArgumentParser
import CommandLineSupport
import Kafka
import Model

extension TopicsCommand {
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check the broker's topics against the catalogue.",
            discussion: """
                Checks partitions, leaders, replicas, retention and the maximum message size, and prints the action \
                for each finding. Exits with status 1 if a topic deviates from the catalogue.
                """)
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let facts = try brokers.facts()
            let findings = TopicFindings.findings(Topics.all, facts)
            let table = Table(["STATE", "TOPIC", "FINDING", "ACTION"], findings) { finding in
                let topic = finding.check.split(separator: " ").last.map(String.init) ?? ""
                return [finding.state.rawValue, topic, finding.seen, finding.remedy ?? "-"]
            }
            try output.show(findings, table)
            if findings.contains(where: { $0.state != .good }) { throw ExitCode(1) }
        }
    }
}

extension BrokerOptions {
    /// - Throws: `CommandFailure` if no broker responds.
    func facts() throws -> BrokerFacts {
        let admin = try admin()
        do {
            return try BrokerFacts.load(admin)
        } catch {
            throw CommandFailure(error)
        }
    }
}
