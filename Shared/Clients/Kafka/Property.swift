/// Validation of librdkafka's properties as operators set them.
package enum Property {
    /// Describes why librdkafka rejects a property: an unsupported name or an invalid value.
    ///
    /// Some problems are detected only when a client is created from all properties (`isInvalidArgument`).
    /// - Returns: librdkafka's one-line message; `nil` if the property is valid on its own.
    package static func problem(_ name: String, _ value: String) -> String? {
        do throws(KafkaError) {
            try ConfigurationHandle().set(name, to: value)
            return nil
        } catch {
            return error.message
        }
    }
}
