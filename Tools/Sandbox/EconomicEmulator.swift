import FoundationEssentials
import HTTPTypes
import Hummingbird
import NIOCore

/// An emulator of e-conomic's Projects API v20, after the vendor's OpenAPI document (https://apis.e-conomic.com,
/// v20.0.0) and its list of error codes.
struct EconomicEmulator: Emulator {
    private static let root = "/api/v20.0.0/"

    let system: EconomicSystem
    /// The accepted `X-AppSecretToken` and `X-AgreementGrantToken`.
    private let tokens: (app: String, grant: String)

    /// - Parameter state: The file that keeps the state over a restart; `nil` keeps it in memory only.
    init(
        state: String? = nil, appSecretToken: String = "sandbox-app", agreementGrantToken: String = "sandbox-grant"
    ) throws {
        system = try EconomicSystem(journalPath: state)
        tokens = (appSecretToken, agreementGrantToken)
    }

    var handlers: [any RemovableChannelHandler] { [SkewedDate { [system] in system.switches.dateSkewSeconds }] }

    func serve(_ request: Request, _ context: ConnectionContext) async throws -> Response {
        guard request.headers[.appSecretToken] == tokens.app, request.headers[.agreementGrantToken] == tokens.grant,
            !system.switches.isRevoked
        else {
            system.count("unauthorized")
            return Self.failure(.unauthorized, "The tokens are not accepted.")
        }
        if let failure = try await injectedFailure(of: request) { return failure }
        guard request.uri.path.hasPrefix(Self.root) else { return Self.notFound }
        let path = String(request.uri.path.dropFirst(Self.root.count))
        let number = path.hasPrefix("timeentries/") ? Int(path.dropFirst("timeentries/".count)) : nil
        switch (request.method, path) {
        case (.get, _):
            return read(path, number, request)
        case (.post, "timeentries"), (.put, "timeentries"):
            let body = try await request.data()
            guard let entry = try? JSONDecoder().decode(EconomicEntryRequest.self, from: body) else {
                return Self.failure(.badRequest, "The body is not a time entry.")
            }
            return try await write(context) { [system] isTrial in
                if request.method == .put {
                    system.count("updates")
                    try system.withState { try $0.update(entry, isTrial: isTrial) }
                    return Response(status: .noContent)
                }
                system.count("creates")
                let number = try system.withState { try $0.create(entry, isTrial: isTrial) }
                return .json(.created, ["number": .number(number)])
            }
        case (.delete, _):
            guard let number else { return Self.notFound }
            return try await write(context) { [system] isTrial in
                system.count("deletes")
                try system.withState { try $0.delete(number, isTrial: isTrial) }
                return Response(status: .noContent)
            }
        default:
            return Self.failure(.methodNotAllowed, "The method is not allowed.")
        }
    }

    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response {
        failure(status, status.reasonPhrase.filter { $0 != " " }, message)
    }

    /// The vendor's error body, without null fields.
    static func failure(
        _ status: HTTPResponse.Status, _ code: String, _ message: String, property: String? = nil
    ) -> Response {
        .json(
            status,
            .present([
                "errorCode": .string(code), "message": .string(message), "developerHint": "This is an emulator.",
                "logId": .string(UUID().uuidString), "logTimeUtc": "2024-01-01T00:00:00", "property": .text(property),
            ]))
    }
}

extension EconomicRules.Refusal: EmulatorRefusal {
    var response: Response {
        EconomicEmulator.failure(HTTPResponse.Status(code: status), code, message, property: property)
    }
}

extension HTTPField.Name {
    fileprivate static let appSecretToken = custom("X-AppSecretToken")
    fileprivate static let agreementGrantToken = custom("X-AgreementGrantToken")
}
