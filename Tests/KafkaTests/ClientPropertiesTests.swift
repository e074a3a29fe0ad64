import CKafka
import Foundation
import TestSupport
import Testing

@testable import Kafka

/// The effective properties of a consumer in librdkafka.
@Suite(.ownThreads) struct ClientPropertiesTests {
    /// A real broker responds to a fetch at the first byte: a shorter wait would only cause more requests.
    @Test(arguments: [("fetch.wait.max.ms", "500"), ("fetch.error.backoff.ms", "500")])
    func consumerFetchesWithTheDefaultsOfKafka(name: String, value: String) throws {
        #expect(try Self.value(of: name) == value)
        #expect(try Self.value(of: name, overrides: [name: "10"]) == "10")
    }

    /// The documentation lists all properties with their values.
    @Test func propertiesAreDocumented() throws {
        let text = try String(
            contentsOf: projectFolder.appendingPathComponent("docs/operators/kafka-clients.md"), encoding: .utf8)
        let sections = text.components(separatedBy: "\n## ")
        for (heading, values) in [
            ("All clients", ClientProperties.common),
            ("Consumers", ClientProperties.consumer.merging(["enable.auto.offset.store": "false"]) { $1 }),
            ("Producers", ClientProperties.producer),
        ] {
            let section = try #require(sections.first { $0.hasPrefix(heading) })
            let rows = section.split(separator: "\n").map {
                $0.split(separator: "|").map { cell in
                    cell.trimmingCharacters(in: .whitespaces)
                }
            }
            let documented = rows.filter { $0.count == 4 && $0[0].hasPrefix("`") }.map { $0[..<3].map(Self.plain) }
            #expect(Set(documented.map { $0[0] }) == Set(values.keys), "\(heading)")
            for row in documented {
                // The value is the program's name.
                if row[0] != "client.id" { #expect(row[1] == values[row[0]], "\(row[0])") }
                #expect(try row[2] == Self.standard(of: row[0]), "\(row[0])")
            }
        }
    }

    /// A cell without its marks: "`all`" is all, and "-1, the same" is -1.
    private static func plain(_ cell: String) -> String {
        cell.replacing("`", with: "").replacing(", the same", with: "")
    }

    private static func value(of name: String, overrides: [String: String] = [:]) throws -> String {
        let properties = try ClientProperties(
            brokers: "127.0.0.1:1", defaults: ClientProperties.consumer, overrides: overrides)
        let configuration = try properties.makeHandle()
        return try unsafe text { unsafe rd_kafka_conf_get(configuration.pointer, name, $0, $1) }
    }

    /// librdkafka's default; some properties are those of a topic.
    private static func standard(of name: String) throws -> String {
        let configuration = ConfigurationHandle()
        if let value = try? unsafe text({ unsafe rd_kafka_conf_get(configuration.pointer, name, $0, $1) }) {
            return value
        }
        let topic = unsafe rd_kafka_topic_conf_new()
        defer { unsafe rd_kafka_topic_conf_destroy(topic) }
        return try unsafe text { unsafe rd_kafka_topic_conf_get(topic, name, $0, $1) }
    }

    private struct Unknown: Error {}

    private static func text(
        _ get: (UnsafeMutablePointer<CChar>, UnsafeMutablePointer<Int>) -> rd_kafka_conf_res_t
    ) throws -> String {
        var text = [CChar](repeating: 0, count: 32)
        var size = text.count
        let result = unsafe get(&text, &size)
        guard result == RD_KAFKA_CONF_OK else { throw Unknown() }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
