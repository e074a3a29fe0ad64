import ArgumentParser
import Audit
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension TopicsCommand {
    struct Republish: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Publish all objects of a topic again, or of all topics.",
            discussion: """
                For readers that missed some, and for kinds that are routed to a topic later than they were written. \
                change-relay does it, beside what changes; readers that had them do nothing.
                """)
        @Argument(help: "Only this topic.") var topic: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if let topic { _ = try Topic.named(topic) }
        }

        func run() throws {
            var connection = try database.connect()
            let topics = Topics.all.map(\.name).filter { topic == nil || topic == $0 }
            var statements: [Statement] = []
            for topic in topics {
                statements.append(KeyedWorker.Republish.ask(topic))
                statements.append(Administrator.commandLine.audit(.topicRepublished, topic, in: nil))
            }
            let answers = try connection.run(statements)
            let count = answers.first?.affectedCount ?? 0
            if output.json { return try printJSON(["topics": topics.count, "environments": count]) }
            print(
                "\(topics.joined(separator: ", ")): published again by change-relay, in \(count) "
                    + (count == 1 ? "environment" : "environments"))
        }
    }
}
