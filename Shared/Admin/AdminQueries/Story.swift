package import Essentials

/// The life of one object, hop by hop, as what is stored of it tells.
package struct Story: Encodable, Equatable, Sendable {
    /// One thing that happened to it.
    package struct Hop: Encodable, Equatable, Sendable {
        /// When it happened; `nil` where nothing tells.
        package var at: Timestamp?
        /// Who did it: a service's name, `device`, `kafka`, or the back end.
        package var service: String
        /// What happened, as a name for programs, such as `written`, `published`, `called`, `answered`, `parked`.
        package var event: String
        /// The same for people, in one line.
        package var text: String
        /// The position of what was written or decided about.
        package var position: Int64?
        package var topic: String?
        package var partition: Int32?
        package var offset: Int64?
        /// Which attempt it belongs to, counted from 1.
        package var attempt: Int?
        /// The W3C trace context it belongs to.
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
    /// In the order in which they happened, as far as that is known.
    package let hops: [Hop]
    /// What cannot be told, and why.
    package let gaps: [String]

    package init(environment: String, subject: String, hops: [Hop], gaps: [String]) {
        (self.environment, self.subject, self.hops, self.gaps) = (environment, subject, hops, gaps)
    }
}
