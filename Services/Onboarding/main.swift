// Onboards devices: registration, login at the identity provider, and notification when the realm is ready.

import HTTPServer
import Logging
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
    let appPath = try configuration.optionalText(Settings.appFolder)
    var gateway = try configuration.optionalText(Settings.gateway)
    if let url = gateway, url.hasSuffix("/") { gateway = String(url.dropLast()) }
    if hasPage || appPath != nil, gateway == nil {
        throw ConfigurationError(
            "\(Settings.gateway.variable) is not set; it is required by the device page and the app")
    }
    var app: AppFolder?
    if let appPath, let gateway {
        let folder = try AppFolder(appPath, gateway: gateway)
        if !folder.ignored.isEmpty {
            context.logger.info("app files not served", metadata: ["files": "\(folder.ignored)"])
        }
        app = folder
    }
    EnvironmentNameLoader.start(try configuration.text(.databaseURL))
    let onboarding = try await Onboarding(
        database: configuration.text(.databaseURL), url: url, secrets: SecretBox(configuration.list(.secretKeys)),
        limits: limits, clients: ClientAddress(proxyCount: proxyCount),
        gateway: hasPage ? gateway : nil, app: app, health: context.health, logger: context.logger)
    return onboarding.components(
        host: try configuration.text(.httpHost), port: try configuration.integer(Settings.httpPort),
        connectionCountMax: try configuration.integer(.httpConnectionsMax),
        networkConnectionCountMax: try HTTPLimits.networkConnectionCountMax(configuration), edge: edge)
}
