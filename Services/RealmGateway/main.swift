// The device API: realms, their objects, mutations, blobs and credentials. Reads and writes objects in PostgreSQL;
// never calls a back end.

import HTTPServer
import Identity
import ObjectStore
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("realm-gateway", settings: Settings.all) { context in
    let configuration = context.configuration
    var tokens = TokenVerifier.Limits()
    tokens.clockSkewMax = try configuration.duration(Settings.tokenSkewMax)
    let keys = JWKS()
    EnvironmentNameLoader.start(try configuration.text(.databaseURL))
    let gateway = try await Gateway(
        database: configuration.text(.databaseURL), limits: GatewayLimits(configuration), tokens: tokens,
        clients: ClientAddress(proxyCount: configuration.integer(.httpProxies)), health: context.health,
        secrets: SecretBox(configuration.list(.secretKeys)), logger: context.logger,
        fetch: { try await keys.fetch($0) })
    var http = HTTPLimits()
    http.connectionCountMax = try configuration.integer(.httpConnectionsMax)
    http.networkConnectionCountMax = try HTTPLimits.networkConnectionCountMax(configuration)
    http.headMax = try configuration.duration(.httpHeadMax)
    http.bodyMax = try configuration.duration(.httpBodyMax)
    return gateway.components(
        host: try configuration.text(.httpHost), port: try configuration.integer(Settings.httpPort),
        limits: http, edge: try HTTPEdge(configuration))
}
