public import Essentials

/// Fields of a `Location` object: a person's last location. In the person's own realm, under the person's id;
/// `location-fan-out` maintains copies in `/manager` and in the realms of the person's teams, under the same id.
public struct Location: Codable, Equatable, Sendable {
    /// Degrees north of the equator, from -90 to 90.
    public var latitude: Double
    /// Degrees east of Greenwich, from -180 to 180.
    public var longitude: Double
    /// The accuracy in metres; 0 or more.
    public var accuracy: Double?
    /// The time of the measurement.
    public var timestamp: Timestamp?
    /// The name or address of the location, as the device determined it.
    public var placeName: String?

    /// Creates the fields of a location.
    public init(
        latitude: Double, longitude: Double, accuracy: Double? = nil, timestamp: Timestamp? = nil,
        placeName: String? = nil
    ) {
        self.latitude = latitude
        self.longitude = longitude
        self.accuracy = accuracy
        self.timestamp = timestamp
        self.placeName = placeName
    }
}

extension Location: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case latitude, longitude, accuracy, timestamp, placeName
    }

    package var objection: String? {
        if let problem = Self.objection(latitude, longitude) { return problem }
        return accuracy.map { $0 >= 0 } ?? true ? nil : "'accuracy' must be 0 or more metres"
    }

    /// Describes why coordinates are invalid; `nil` if they are a point on Earth.
    static func objection(_ latitude: Double, _ longitude: Double, pathPrefix path: String = "") -> String? {
        guard (-90...90).contains(latitude) else { return "'\(path)latitude' must be between -90 and 90 degrees" }
        guard (-180...180).contains(longitude) else {
            return "'\(path)longitude' must be between -180 and 180 degrees"
        }
        return nil
    }

    /// The row of ``Kind/location``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user, .manager, .team], ids: .natural, bytesMax: Kind.commonBytesMax,
        route: Route(to: Topics.location, from: [.user]))
}
