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
            let documented = rows.filter { $0.count == 4 && $0[0].hasPrefix("`") }.map { ($0[0], $0[1]) }
            #expect(Set(documented.map(\.0)) == Set(values.keys.map { "`\($0)`" }), "\(heading)")
            for (name, value) in documented where name != "`client.id`" {
                #expect(value == values[name.replacing("`", with: "")].map { "`\($0)`" }, "\(name)")
            }
        }
    }

    private static func value(of name: String, overrides: [String: String] = [:]) throws -> String {
        let properties = try ClientProperties(
            brokers: "127.0.0.1:1", defaults: ClientProperties.consumer, overrides: overrides)
        let configuration = try properties.makeHandle()
        var text = [CChar](repeating: 0, count: 32)
        var size = text.count
        let result = unsafe rd_kafka_conf_get(configuration.pointer, name, &text, &size)
        try #require(result == RD_KAFKA_CONF_OK)
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
