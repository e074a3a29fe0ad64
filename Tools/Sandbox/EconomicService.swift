import NIOCore

/// An emulator of e-conomic's Projects API v20, after the vendor's OpenAPI document (https://apis.e-conomic.com,
/// v20.0.0) and its list of error codes.
struct EconomicService: EmulatorService {
    typealias Configuration = EmulatorConfiguration

    let address: Configuration
    let system: EconomicSystem
    let responder: EconomicResponder

    init(
        _ address: Configuration, appSecretToken: String = "sandbox-app", agreementGrantToken: String = "sandbox-grant"
    ) throws {
        self.address = address
        system = try EconomicSystem(journalPath: address.statePath)
        responder = EconomicResponder(system: system, tokens: (appSecretToken, agreementGrantToken))
    }

    var handlers: [any RemovableChannelHandler] { [SandboxDate { [system] in system.switches.dateSkewSeconds }] }
}
