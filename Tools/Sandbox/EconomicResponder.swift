import FoundationEssentials
import HTTPTypes
import Hummingbird
import Model

/// Handles all requests to the e-conomic emulator.
struct EconomicResponder: HTTPResponder {
    let system: EconomicSystem
    /// The accepted `X-AppSecretToken` and `X-AgreementGrantToken`.
    let tokens: (app: String, grant: String)

    static let root = "/api/v20.0.0"

    func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        if request.uri.path.hasPrefix("/sandbox/") { return try await control(request) }
        guard request.headers[.appSecretToken] == tokens.app, request.headers[.agreementGrantToken] == tokens.grant,
            !system.switches.isRevoked
        else {
            system.count("unauthorized")
            return .economic(.unauthorized, "Unauthorized", "The tokens are not accepted.")
        }
        let failure = try await system.failure(
            of: request, unavailable: .economicUnavailable,
            tooManyRequests: .economic(.tooManyRequests, "TooManyRequests", "You have made too many calls."))
        if let failure { return failure }
        guard request.uri.path.hasPrefix(EconomicResponder.root + "/") else { return .economicNotFound }
        return try await serve(String(request.uri.path.dropFirst(EconomicResponder.root.count + 1)), request, context)
    }

    private func serve(_ path: String, _ request: Request, _ context: ConnectionContext) async throws -> Response {
        let number = path.hasPrefix("timeentries/") ? Int(path.dropFirst("timeentries/".count)) : nil
        switch (request.method, path) {
        case (.get, _):
            return read(path, number, request)
        case (.post, "timeentries"), (.put, "timeentries"):
            let body = try await request.body.collect(upTo: SandboxControl.bodyBytesMax)
            guard
                let entry = try? JSONDecoder().decode(EconomicEntryRequest.self, from: Data(body.readableBytesView))
            else { return .economic(.badRequest, "BadRequest", "The body is not a time entry.") }
            return try await write(context) { [system] isTrial in
                if request.method == .put {
                    system.count("updates")
                    try system.update(entry, isTrial: isTrial)
                    return Response(status: .noContent)
                }
                system.count("creates")
                let number = try system.create(entry, isTrial: isTrial)
                return .json(.created, .object([("number", .number(number))]))
            }
        case (.post, "timeentries/approve"):
            let body = try await request.body.collect(upTo: SandboxControl.bodyBytesMax)
            struct Numbers: Decodable { let numbers: [Int] }
            guard let list = try? JSONDecoder().decode(Numbers.self, from: Data(body.readableBytesView)) else {
                return .economic(.badRequest, "BadRequest", "The body is not a list of numbers.")
            }
            return try await write(context) { [system] isTrial in
                try system.approve(list.numbers, isTrial: isTrial)
                return Response(status: .noContent)
            }
        case (.delete, _):
            guard let number else { return .economicNotFound }
            return try await write(context) { [system] isTrial in
                system.count("deletes")
                try system.delete(number, isTrial: isTrial)
                return Response(status: .noContent)
            }
        default:
            return .economic(.methodNotAllowed, "MethodNotAllowed", "The method is not allowed.")
        }
    }

    private func write(
        _ context: ConnectionContext, _ body: @escaping @Sendable (_ isTrial: Bool) throws -> Response
    ) async throws -> Response {
        let write = FaultyWrite(
            system: system, context: context, unavailable: .economicUnavailable,
            failed: .economic(.internalServerError, "InternalServerError", "Something went wrong."))
        do {
            return try await write.perform(body)
        } catch let refusal as EconomicRules.Refusal {
            system.count("refused")
            let status: HTTPResponse.Status =
                switch refusal.status {
                case .badRequest: .badRequest
                case .notFound: .notFound
                case .conflict: .conflict
                }
            return .economic(status, refusal.code, refusal.message, property: refusal.property)
        }
    }
}

extension HTTPField.Name {
    static let appSecretToken = custom("X-AppSecretToken")
    static let agreementGrantToken = custom("X-AgreementGrantToken")

    private static func custom(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is no name of a header") }
        return name
    }
}

extension Response {
    /// The vendor's error body, without null fields.
    static func economic(
        _ status: HTTPResponse.Status, _ code: String, _ message: String, property: String? = nil
    ) -> Response {
        .json(
            status,
            .object(
                [
                    ("errorCode", .string(code)), ("message", .string(message)),
                    ("developerHint", "This is an emulator."), ("logId", .string(UUID().uuidString)),
                    ("logTimeUtc", "2024-01-01T00:00:00"),
                ] + (property.map { [("property", .string($0))] } ?? [])))
    }

    static var economicNotFound: Response { .economic(.notFound, "NotFound", "The resource does not exist.") }

    static var economicUnavailable: Response {
        .economic(.serviceUnavailable, "ServiceUnavailable", "The service is temporarily unavailable.")
    }
}
