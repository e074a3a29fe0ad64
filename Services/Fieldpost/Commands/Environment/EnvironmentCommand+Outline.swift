import ArgumentParser
import Audit
import Essentials
import FoundationEssentials
import Model
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment outline`: the outline of the map in apps.
    struct Outline: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show, set or remove the outline of the map in apps.",
            discussion: """
                Without options it prints the outline as GeoJSON. FILE is GeoJSON (RFC 7946): a FeatureCollection, a \
                Feature or a geometry with lines and areas, such as a coast or a city limit. Coordinates are \
                [longitude, latitude] in degrees of WGS 84. At most \(MapOutline.positionCountMax) positions are \
                stored, without properties. Devices load a changed outline when they are online.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(help: ArgumentHelp("Replace the outline by that of this file.", valueName: "file")) var file: String?
        @Flag(help: "Remove the outline.") var remove = false
        @OptionGroup var database: DatabaseOptions

        /// Maximum size of a file, with the properties that are not stored.
        private static let bytesMax = 16 << 20

        func validate() throws {
            guard file == nil || !remove else { throw ValidationError("give --file or --remove, not both") }
        }

        func run() throws {
            if remove {
                return try EnvironmentFeature.remove("outline", from: name, database) { id, connection in
                    try OutlineStore.load(id, on: &connection) == nil ? nil : [OutlineStore.remove(from: id)]
                }
            }
            if let file { return try set(try Self.read(file)) }
            var connection = try database.connect()
            let id = try EnvironmentStore.find(name, on: &connection)
            guard let stored = try OutlineStore.load(id, on: &connection) else {
                throw CommandFailure("\(name) has no outline")
            }
            print(stored.content)
        }

        private func set(_ outline: MapOutline) throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let id = try EnvironmentStore.find(name, on: &connection)
            try connection.run([
                try OutlineStore.save(outline, in: id),
                Administrator.commandLine.audit(.environmentChanged, name, in: id, detail: ["changed": "outline"]),
            ])
            print("\(name) has an outline of \(outline.positionCount) positions")
        }

        private static func read(_ path: String) throws -> MapOutline {
            let data = try TextFile.read(path, bytesMax: bytesMax)
            do {
                try JSONCheck.checkKeys(ofFile: Array(data))
                return try JSONDecoder().decode(MapOutline.self, from: data)
            } catch let problem as JSONError {
                throw CommandFailure("\(path): \(problem)")
            } catch let error as DecodingError {
                throw CommandFailure("\(path): \(error.locatedDescription)")
            }
        }
    }
}
