/// An emulator of HCL Compass's REST API, after the vendor's pages and the requests of its sample apps.
struct CompassService: EmulatorService {
    typealias Configuration = EmulatorConfiguration

    let address: Configuration
    let system: CompassSystem
    let responder: CompassResponder

    init(_ address: Configuration, repository: String = "CCMRepo", database: String = "SAMPL") throws {
        self.address = address
        system = try CompassSystem(journalPath: address.statePath)
        responder = CompassResponder(system: system, repository: repository, database: database)
    }
}
