package import Essentials
package import FoundationEssentials
package import Model
package import Postgres

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
    package var hops: [Hop]
    /// The missing information, with the reasons.
    package var gaps: [String]

    /// Sorts the hops by time; those of the same time keep their order, and those without a time are last.
    package mutating func sort() {
        hops = hops.enumerated().sorted { one, other in
            switch (one.element.at, other.element.at) {
            case (let a?, let b?) where a != b: a < b
            case (_?, nil): true
            case (nil, _?): false
            case (_?, _?), (nil, nil): one.offset < other.offset
            }
        }.map(\.element)
    }
}

extension ObjectTrace {
    /// Reads the traces of the objects with an id, one for each realm that has one, from PostgreSQL.
    ///
    /// - Parameters:
    ///   - environment: The environment; `nil`: all.
    ///   - bounds: The limits; data beyond them is reported as a gap.
    /// - Returns: At most ``ObjectTraceReader/tracesMax`` traces; none if no object has the id.
    package static func load(
        _ id: UUID, in environment: EnvironmentID?, within bounds: ObjectTraceReader.Bounds = .init(),
        on connection: inout Connection
    ) throws -> [ObjectTrace] {
        let objects = try ObjectTraceReader.objects(id, in: environment, on: &connection)
        return try objects.map { object in
            var reader = ObjectTraceReader(object, within: bounds)
            return try reader.trace(alongside: objects, on: &connection)
        }
    }
}
