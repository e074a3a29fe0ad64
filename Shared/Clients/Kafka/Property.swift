/// One of librdkafka's properties, as an operator sets it.
package enum Property {
    /// Why librdkafka does not take a property: it knows no such name, or refuses the value.
    ///
    /// Some faults show only when a client is made of all of them (`isInvalidArgument`).
    /// - Returns: `nil` when the property is good by itself; otherwise one line of librdkafka's.
    package static func problem(_ name: String, _ value: String) -> String? {
        do throws(KafkaError) {
            try ConfigurationHandle().set(name, to: value)
            return nil
        } catch {
            return error.message
        }
    }
}
