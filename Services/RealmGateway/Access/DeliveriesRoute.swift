import Access
import HTTPServer
import Hummingbird
import Model
import Postgres
import Tenants

/// `GET /v1/deliveries`: the channels over which people can receive notices outside of their devices.
struct DeliveriesRoute: Sendable {
    let authentication: Authentication
    let pool: Pool

    private struct Offer: Encodable {
        let webhookHosts: [String]
        let email: Bool
        let pushKey: String?
        let native: [DeviceTarget.Service]
    }

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let caller = try await authentication.login(request, context).caller
        let settings = try await mappingDatabaseErrors {
            try await pool.run { connection in try Self.load(caller.environment, &connection) }
        }
        return try .json(
            Offer(
                webhookHosts: settings?.webhookHosts ?? [], email: settings?.mailServer != nil,
                pushKey: settings?.pushContact == nil ? nil : settings?.pushPublicKey,
                native: DeviceTarget.Service.allCases.filter { settings?.offers($0) == true }))
    }

    /// Returns `nil` before the schema migrations that add the table and its columns.
    private static func load(_ environment: EnvironmentID, _ connection: inout Connection) throws -> DeliverySettings? {
        do {
            return try DeliverySettings.load(environment, on: &connection)
        } catch {
            guard error.isMissingTable || error.isMissingColumn else { throw error }
            return nil
        }
    }
}
