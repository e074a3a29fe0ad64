/// The outline that apps draw below the points of a map, such as a coast or a city limit: lines and areas in WGS 84.
///
/// Decodes a GeoJSON file (RFC 7946). Properties, altitudes and ids are dropped, and coordinates are rounded to a tenth
/// of a metre. Encodes as a `FeatureCollection` with at most two features: all areas as a `MultiPolygon`, all lines
/// as a `MultiLineString`. Errors are `DecodingError`, whose path names the feature and the position.
package struct MapOutline: Sendable, Equatable {
    /// Maximum number of positions: a phone draws them in each frame. Encoded, they have less than 1 MiB, which the
    /// table's check permits.
    package static let positionCountMax = 20_000

    /// Polygons: the rings of each, the exterior one first.
    private(set) var areas: [[Ring]] = []
    private(set) var lines: [Line] = []

    /// The number of positions.
    package var positionCount: Int {
        areas.joined().reduce(0) { $0 + $1.positions.count } + lines.reduce(0) { $0 + $1.positions.count }
    }

    /// A longitude and a latitude in degrees.
    struct Position: Sendable, Equatable {
        let longitude: Double
        let latitude: Double
    }

    /// Two or more positions.
    struct Line: Sendable, Equatable {
        let positions: [Position]
    }

    /// Four or more positions; the last equals the first.
    struct Ring: Sendable, Equatable {
        let positions: [Position]
    }
}

// MARK: Decoding

extension MapOutline: Decodable {
    private enum Key: String, CodingKey { case type, features, geometry, coordinates, properties }

    private enum GeometryType: String, CaseIterable {
        case polygon = "Polygon"
        case multiPolygon = "MultiPolygon"
        case lineString = "LineString"
        case multiLineString = "MultiLineString"
    }

    private static let collectionType = "FeatureCollection"
    private static let featureType = "Feature"

    private struct Feature: Decodable {
        var outline = MapOutline()

        init(from decoder: any Decoder) throws {
            let object = try decoder.container(keyedBy: Key.self)
            let type = try object.decode(String.self, forKey: .type)
            guard type == MapOutline.featureType else {
                throw MapOutline.unexpected(type, in: object, allowed: [MapOutline.featureType])
            }
            // A feature without a location has the geometry `null`.
            guard try !object.decodeNil(forKey: .geometry) else { return }
            let geometry = try object.nestedContainer(keyedBy: Key.self, forKey: .geometry)
            try outline.add(geometry, otherTypes: [])
        }
    }

    package init(from decoder: any Decoder) throws {
        let object = try decoder.container(keyedBy: Key.self)
        switch try object.decode(String.self, forKey: .type) {
        case Self.collectionType:
            for feature in try object.decode([Feature].self, forKey: .features) {
                areas += feature.outline.areas
                lines += feature.outline.lines
            }
        case Self.featureType: self = try Feature(from: decoder).outline
        default: try add(object, otherTypes: [Self.collectionType, Self.featureType])
        }
        let count = positionCount
        guard count > 0 else { throw Self.failure(decoder, "there are no lines or areas") }
        guard count <= Self.positionCountMax else {
            throw Self.failure(decoder, "there are \(count) positions; at most \(Self.positionCountMax): simplify it")
        }
    }

    /// Adds a geometry.
    ///
    /// - Parameter otherTypes: Further types that the error lists as allowed.
    private mutating func add(_ geometry: KeyedDecodingContainer<Key>, otherTypes: [String]) throws {
        let name = try geometry.decode(String.self, forKey: .type)
        switch GeometryType(rawValue: name) {
        case .polygon: areas.append(try geometry.decode([Ring].self, forKey: .coordinates))
        case .multiPolygon: areas += try geometry.decode([[Ring]].self, forKey: .coordinates)
        case .lineString: lines.append(try geometry.decode(Line.self, forKey: .coordinates))
        case .multiLineString: lines += try geometry.decode([Line].self, forKey: .coordinates)
        case nil:
            throw Self.unexpected(name, in: geometry, allowed: otherTypes + GeometryType.allCases.map(\.rawValue))
        }
        areas.removeAll(where: \.isEmpty)
    }

    private static func unexpected(
        _ type: String, in object: KeyedDecodingContainer<Key>, allowed: [String]
    ) -> DecodingError {
        .dataCorruptedError(
            forKey: .type, in: object,
            debugDescription: "'\(type.prefix(40))' is not supported; allowed: \(allowed.joined(separator: ", "))")
    }

    fileprivate static func failure(_ decoder: any Decoder, _ problem: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: problem))
    }
}

extension MapOutline.Position: Codable {
    init(from decoder: any Decoder) throws {
        guard var values = try? decoder.unkeyedContainer(), let longitude = try? values.decode(Double.self),
            let latitude = try? values.decode(Double.self)
        else { throw MapOutline.failure(decoder, "a position is [longitude, latitude], two numbers") }
        self.longitude = try Self.rounded("longitude", longitude, max: 180, decoder)
        self.latitude = try Self.rounded("latitude", latitude, max: 90, decoder)
    }

    private static func rounded(
        _ name: String, _ degrees: Double, max: Double, _ decoder: any Decoder
    ) throws -> Double {
        guard abs(degrees) <= max else {
            throw MapOutline.failure(
                decoder,
                "the \(name) \(degrees) is not from -\(Int(max)) to \(Int(max)); positions are "
                    + "[longitude, latitude] in degrees of WGS 84 (EPSG:4326)")
        }
        // The sum has no negative zero.
        return (degrees * 1_000_000).rounded() / 1_000_000 + 0
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.unkeyedContainer()
        try values.encode(longitude)
        try values.encode(latitude)
    }
}

extension MapOutline.Line: Codable {
    init(from decoder: any Decoder) throws {
        positions = try [MapOutline.Position](from: decoder)
        guard positions.count >= 2 else { throw MapOutline.failure(decoder, "a line has at least 2 positions") }
    }

    func encode(to encoder: any Encoder) throws { try positions.encode(to: encoder) }
}

extension MapOutline.Ring: Codable {
    init(from decoder: any Decoder) throws {
        positions = try [MapOutline.Position](from: decoder)
        guard positions.count >= 4 else {
            throw MapOutline.failure(decoder, "a polygon's ring has at least 4 positions")
        }
        guard positions.first == positions.last else {
            throw MapOutline.failure(decoder, "the ring is not closed: its last position must equal its first")
        }
    }

    func encode(to encoder: any Encoder) throws { try positions.encode(to: encoder) }
}

// MARK: Encoding

extension MapOutline: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(Self.collectionType, forKey: .type)
        var features = object.nestedUnkeyedContainer(forKey: .features)
        if !areas.isEmpty { try Self.encode(.multiPolygon, areas, to: &features) }
        if !lines.isEmpty { try Self.encode(.multiLineString, lines, to: &features) }
    }

    private static func encode(
        _ type: GeometryType, _ coordinates: some Encodable, to features: inout any UnkeyedEncodingContainer
    ) throws {
        var feature = features.nestedContainer(keyedBy: Key.self)
        try feature.encode(featureType, forKey: .type)
        // RFC 7946 §3.2 requires the member.
        try feature.encodeNil(forKey: .properties)
        var geometry = feature.nestedContainer(keyedBy: Key.self, forKey: .geometry)
        try geometry.encode(type.rawValue, forKey: .type)
        try geometry.encode(coordinates, forKey: .coordinates)
    }
}
