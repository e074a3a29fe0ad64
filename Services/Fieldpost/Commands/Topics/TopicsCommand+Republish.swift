import ArgumentParser
import Audit
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension TopicsCommand {
    struct Republish: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Republish all objects of one topic or of all topics.",
            discussion: """
                For consumers that lost messages, and for kinds that were added to a topic after objects were written. \
                change-relay republishes alongside new changes; consumers skip objects that they have already \
                processed.
                """)
        @Argument(help: "Limit to this topic.") var topic: String?
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
                statements.append(KeyedWorker.Republish.request(topic))
                statements.append(Administrator.commandLine.audit(.topicRepublished, topic, in: nil))
            }
            let results = try connection.run(statements)
            let count = results.first?.affectedCount ?? 0
            if output.json { return try printJSON(["topics": topics.count, "environments": count]) }
            print(
                "\(topics.joined(separator: ", ")): change-relay republishes it in \(count) "
                    + (count == 1 ? "environment" : "environments"))
        }
    }
}
