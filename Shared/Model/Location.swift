public import Essentials

/// Fields of a `Location` object: where a person was last. In the person's own realm, under the person's id; copies
/// that `location-fan-out` makes are in `/manager` and in the realms of the person's teams, under the same id.
public struct Location: Codable, Equatable, Sendable {
    /// Degrees north of the equator, from -90 to 90.
    public var latitude: Double
    /// Degrees east of Greenwich, from -180 to 180.
    public var longitude: Double
    /// Within how many metres that is true; 0 or more.
    public var accuracy: Double?
    /// When the person was there.
    public var timestamp: Timestamp?

    /// A place.
    public init(latitude: Double, longitude: Double, accuracy: Double? = nil, timestamp: Timestamp? = nil) {
        self.latitude = latitude
        self.longitude = longitude
        self.accuracy = accuracy
        self.timestamp = timestamp
    }
}

extension Location: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case latitude, longitude, accuracy, timestamp
    }

    package var objection: String? {
        if let problem = Self.objection(latitude, longitude) { return problem }
        return accuracy.map { $0 >= 0 } ?? true ? nil : "'accuracy' must be 0 or more metres"
    }

    /// What is wrong with coordinates; `nil` when they are a place on Earth.
    static func objection(_ latitude: Double, _ longitude: Double, in place: String = "") -> String? {
        guard (-90...90).contains(latitude) else { return "'\(place)latitude' must be between -90 and 90 degrees" }
        guard (-180...180).contains(longitude) else {
            return "'\(place)longitude' must be between -180 and 180 degrees"
        }
        return nil
    }

    /// The row of ``Kind/location``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .manager, .team], ids: .natural, bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.location, from: [.user]))
}
