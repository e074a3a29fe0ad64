// Onboards devices: registration, login at the identity provider, and notification when the realm is ready.

import HTTPServer
import ObjectStore
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("onboarding", settings: Settings.all) { context in
    let configuration = context.configuration
    let edge = try HTTPEdge(configuration)
    let limits = try OnboardingLimits(configuration)
    let proxyCount = try configuration.integer(.httpProxies)
    let url = try configuration.text(Settings.url)
    try limits.check(url: url, edge: edge, proxyCount: proxyCount)
    let hasPage = try configuration.flag(Settings.devicePage)
    if hasPage, try configuration.optionalText(Settings.gateway) == nil {
        throw ConfigurationError("\(Settings.gateway.variable) is not set; it is required by the device page")
    }
    EnvironmentNameLoader.start(try configuration.text(.databaseURL))
    let onboarding = try await Onboarding(
        database: configuration.text(.databaseURL), url: url, secrets: SecretBox(configuration.list(.secretKeys)),
        limits: limits, clients: ClientAddress(proxyCount: proxyCount),
        gateway: hasPage ? configuration.text(Settings.gateway) : nil, health: context.health, logger: context.logger)
    return onboarding.components(
        host: try configuration.text(.httpHost), port: try configuration.integer(Settings.httpPort),
        connectionCountMax: try configuration.integer(.httpConnectionsMax),
        networkConnectionCountMax: try HTTPLimits.networkConnectionCountMax(configuration), edge: edge)
}
