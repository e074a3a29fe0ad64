import ArgumentParser
import CommandLineSupport
import Kafka
import Model

extension TopicsCommand {
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare the broker's topics and their settings with the catalogue, and say what to do.",
            discussion: """
                Partitions, their leaders and copies, what is removed and when, the largest message. Ends with status \
                1 when a topic is not as the catalogue wants it.
                """)
        @OptionGroup var brokers: BrokerOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let facts = try brokers.facts()
            let findings = TopicFindings.findings(Topics.all, facts)
            var table = Table([("STATE", .left), ("TOPIC", .left), ("SEEN", .left), ("TO DO", .left)], empty: "")
            for finding in findings {
                let topic = finding.check.split(separator: " ").last.map(String.init) ?? ""
                table.add([finding.state.rawValue, topic, finding.seen, finding.remedy ?? "-"])
            }
            try output.show(findings, table)
            if findings.contains(where: { $0.state != .good }) { throw ExitCode(1) }
        }
    }
}

extension BrokerOptions {
    /// - Throws: `CommandFailure` when no broker answers.
    func facts() throws -> BrokerFacts {
        let admin = try admin()
        do {
            return try BrokerFacts.load(admin)
        } catch {
            throw CommandFailure(error)
        }
    }
}
