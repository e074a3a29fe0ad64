import CKafka
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
