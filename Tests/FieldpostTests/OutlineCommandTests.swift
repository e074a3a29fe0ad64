import Foundation
import Model
import Postgres
import Tenants
import TestSupport
import Testing

/// `fieldpost environment outline`.
@Suite(.ownThreads) struct OutlineCommandTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        for (id, name) in [(Int32(1), "acme"), (2, "other")] {
            try EnvironmentRows(id: id, name: name, provider: .init(issuer: "https://\(name).example"))
                .insert(on: &connection)
        }
    }

    private func run(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func set(_ content: String, in environment: String = "acme") throws -> CommandResult {
        var result: CommandResult?
        try withFolder { folder in
            let file = folder.appendingPathComponent("coast.json")
            try Data(content.utf8).write(to: file)
            result = try run("outline", environment, "--file", file.path)
        }
        return try #require(result)
    }

    private static let ring = "[[12, 55], [13, 55], [13, 56], [12, 55]]"

    @Test func outlineIsStoredCanonicallyAndRemoved() throws {
        #expect(try run("outline", "acme").errors.contains("acme has no outline"))
        #expect(try run("show", "acme").output.contains("none: fieldpost environment outline"))
        let result = try set(
            """
            \u{FEFF}{"type": "FeatureCollection", "name": "coast", "features": [
                {"type": "Feature", "properties": {"name": "Zealand"},
                 "geometry": {"type": "Polygon", "coordinates": [\(Self.ring)]}},
                {"type": "Feature", "id": 7, "geometry": null, "properties": null},
                {"type": "Feature",
                 "geometry": {"type": "LineString", "coordinates": [[-0.0, 1e-7], [12.3456789, 55, 3]]}},
                {"type": "Feature", "geometry": {"type": "MultiPolygon", "coordinates": [[], [\(Self.ring)]]}},
                {"type": "Feature", "geometry": {"type": "MultiLineString", "coordinates": [[[180, 90], [-180, -90]]]}}
            ]}
            """)
        #expect(result.status == 0 && result.output == "acme has an outline of 12 positions\n", "\(result.errors)")
        let shown = try run("outline", "acme").output
        let ring = "[[[12,55],[13,55],[13,56],[12,55]]]"
        #expect(
            shown == #"{"features":[{"geometry":{"coordinates":[\#(ring),\#(ring)],"type":"MultiPolygon"},"#
                + #""properties":null,"type":"Feature"},{"geometry":{"coordinates":"#
                + #"[[[0,0],[12.345679,55]],[[180,90],[-180,-90]]],"type":"MultiLineString"},"#
                + #""properties":null,"type":"Feature"}],"type":"FeatureCollection"}"# + "\n")
        #expect(try run("show", "acme").output.contains("\(shown.utf8.count - 1) bytes"))
        #expect(try run("show", "acme", "--json").output.contains(#""outlineBytes" : \#(shown.utf8.count - 1)"#))
        // The output is valid input.
        #expect(try set(shown).status == 0 && run("outline", "acme").output == shown)
        #expect(try run("outline", "other").errors.contains("other has no outline"))
        #expect(try run("outline", "acme", "--remove").output == "acme has no outline anymore\n")
        #expect(try run("outline", "acme", "--remove").errors.contains("acme has no outline"))
        #expect(try run("outline", "acme").status == 1)
        var connection = try Connection(conninfo)
        let audit = try connection.run(
            """
            SELECT detail->>'changed' FROM access.audit
            WHERE subject = 'acme' AND environment_id = 1 AND action = 'environment.changed' ORDER BY id
            """)
        #expect(try audit.decode(String.self) == ["outline", "outline", "outline removed"])
    }

    @Test(arguments: [
        #"{"type": "Polygon", "coordinates": [\#(ring)]}"#,
        #"{"type": "MultiLineString", "coordinates": [\#(ring)]}"#,
        #"{"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": \#(ring)}}"#,
    ])
    func geometryAndFeatureAreAccepted(content: String) throws {
        let result = try set(content)
        #expect(result.status == 0 && result.output.contains("4 positions"), "\(result.errors)")
    }

    private static func feature(_ type: String, _ coordinates: String) -> String {
        """
        {"type": "FeatureCollection", "features": [
            {"type": "Feature", "geometry": {"type": "LineString", "coordinates": \(ring)}},
            {"type": "Feature", "geometry": {"type": "\(type)", "coordinates": \(coordinates)}}]}
        """
    }

    private static let allowedTypes = "Polygon, MultiPolygon, LineString, MultiLineString"

    static let malformed: [(content: String, problem: String)] = [
        ("", "coast.json: "), ("coast", "coast.json: "), ("[]", "coast.json: "), ("null", "coast.json: "),
        ("{}", "coast.json: 'type' is missing"), (#"{"type": 7}"#, "coast.json: type: "),
        (#"{"type": "Polygon", "type": "Polygon"}"#, "'type'"),
        (
            #"{"type": "Topology", "objects": {}}"#,
            "type: 'Topology' is not supported; allowed: FeatureCollection, Feature, \(allowedTypes)"
        ),
        (#"{"type": "FeatureCollection", "features": []}"#, "there are no lines or areas"),
        (#"{"type": "Feature", "geometry": null}"#, "there are no lines or areas"),
        (#"{"type": "FeatureCollection", "features": [{"type": "Point"}]}"#, "features[0].type: 'Point' is not"),
        (feature("Point", "[12, 55]"), "features[1].geometry.type: 'Point' is not supported; allowed: \(allowedTypes)"),
        (feature("GeometryCollection", "[]"), "features[1].geometry.type: 'GeometryCollection' is not supported"),
        (feature("LineString", "[[12, 55]]"), "features[1].geometry.coordinates: a line has at least 2 positions"),
        (
            feature("LineString", "[[12, 55], [12, 90.5]]"),
            "features[1].geometry.coordinates[1]: the latitude 90.5 is not from -90 to 90"
        ),
        (
            feature("MultiPolygon", "[[\(ring)], [\(ring.replacing("13, 56", with: "725000.5, 6175000"))]]"),
            "features[1].geometry.coordinates[1][0][2]: the longitude 725000.5 is not from -180 to 180"
        ),
        (feature("LineString", #"[[12, 55], ["12", 55]]"#), "coordinates[1]: a position is [longitude, latitude]"),
        (feature("LineString", "[[12, 55], [12]]"), "coordinates[1]: a position is [longitude, latitude]"),
        (feature("LineString", "[[12, 55], null]"), "coordinates[1]: a position is [longitude, latitude]"),
        (feature("LineString", "[[12, 55], [NaN, 55]]"), "coast.json: "),
        (feature("LineString", "[[12, 55], [1e999, 55]]"), "coast.json: "),
        (feature("Polygon", ring), "coordinates[0][0]: a position is [longitude, latitude]"),
        (feature("Polygon", "[[[12, 55], [13, 55], [12, 55]]]"), "coordinates[0]: a polygon's ring has at least 4"),
        (
            feature("Polygon", "[[[12, 55], [13, 55], [13, 56], [12, 56]]]"),
            "coordinates[0]: the ring is not closed: its last position must equal its first"
        ),
        (String(repeating: "[", count: 100_000), "coast.json: "),
        (feature("LineString", String(repeating: "[", count: 400) + String(repeating: "]", count: 400)), "coast.json"),
        (
            feature("LineString", "[\(Array(repeating: "[12, 55]", count: 19_997).joined(separator: ","))]"),
            "there are 20001 positions; at most 20000: simplify it"
        ),
        (String(repeating: " ", count: 16 << 20) + "{}", "has more than 16777216 bytes"),
    ]

    @Test func malformedFileIsRejectedWithoutChanges() throws {
        #expect(try set(Self.feature("LineString", "[[1, 2], [3, 4]]")).status == 0)
        let before = try run("outline", "acme").output
        for (content, problem) in Self.malformed {
            let result = try set(content)
            #expect(result.status == 1 && result.errors.contains(problem), "\(content.prefix(300)): \(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        }
        #expect(try run("outline", "acme").output == before)
        #expect(try run("outline", "unknown", "--remove").errors.contains("environment unknown does not exist"))
        let line = Self.feature("LineString", "[[1, 2], [3, 4]]")
        #expect(try set(line, in: "unknown").errors.contains("environment unknown does not exist"))
        #expect(try run("outline", "acme", "--remove", "--file", "x").status != 0)
    }

    /// The largest outline has the most lines of the longest positions, and satisfies the table's check.
    @Test func largestOutlineIsStored() throws {
        let line = "[[-179.123456, -89.123456], [-178.123456, -88.123456]]"
        let lines = Array(repeating: line, count: MapOutline.positionCountMax / 2).joined(separator: ",")
        let result = try set(#"{"type": "MultiLineString", "coordinates": [\#(lines)]}"#)
        #expect(result.status == 0, "\(result.errors)")
        #expect(try run("outline", "acme").output.utf8.count < 1 << 20)
    }
}
