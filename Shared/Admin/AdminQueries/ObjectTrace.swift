package import Essentials

/// The trace of one object: its history hop by hop, from stored records.
package struct ObjectTrace: Encodable, Equatable, Sendable {
    /// One event in the history.
    package struct Hop: Encodable, Equatable, Sendable {
        /// The time; `nil` if it is not recorded.
        package var at: Timestamp?
        /// The origin: a service's name, `device`, `kafka` or `back end`.
        package var service: String
        /// The name of the event, such as `written`, `published`, `called`, `answered` or `parked`.
        package var event: String
        /// A description in one line.
        package var text: String
        /// The position that was written or processed.
        package var position: Int64?
        package var topic: String?
        package var partition: Int32?
        package var offset: Int64?
        /// The number of the attempt, from 1 on.
        package var attempt: Int?
        /// The W3C trace context.
        package var traceparent: String?

        package init(
            at: Timestamp?, service: String, event: String, text: String, position: Int64? = nil,
            topic: String? = nil, partition: Int32? = nil, offset: Int64? = nil, attempt: Int? = nil,
            traceparent: String? = nil
        ) {
            (self.at, self.service, self.event, self.text) = (at, service, event, text)
            (self.position, self.topic, self.partition, self.offset) = (position, topic, partition, offset)
            (self.attempt, self.traceparent) = (attempt, traceparent)
        }
    }

    /// The environment's name.
    package let environment: String
    /// Realm, kind and id, as in a message's `ce_subject`.
    package let subject: String
    /// In chronological order, as far as the times are recorded.
    package let hops: [Hop]
    /// The missing information, with the reasons.
    package let gaps: [String]

    package init(environment: String, subject: String, hops: [Hop], gaps: [String]) {
        (self.environment, self.subject, self.hops, self.gaps) = (environment, subject, hops, gaps)
    }
}
