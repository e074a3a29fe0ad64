// Lets a device in: registers it, has its person log in at the identity provider, and tells it when its realm is ready.

import Runtime
import Secrets

await serve("onboarding", settings: Settings.all) { context in
    let configuration = context.configuration
    let hasPage = try configuration.flag(Settings.devicePage)
    let onboarding = try await Onboarding(
        database: configuration.text(.databaseURL), url: configuration.text(Settings.url),
        secrets: SecretBox(configuration.list(.secretKeys)), limits: OnboardingLimits(configuration),
        clients: ClientAddress(proxyCount: configuration.integer(.httpProxies)),
        gateway: hasPage ? configuration.text(Settings.gateway) : nil, health: context.health, logger: context.logger)
    return onboarding.components(
        host: try configuration.text(Settings.httpHost), port: try configuration.integer(Settings.httpPort),
        connectionCountMax: try configuration.integer(Settings.connectionsMax), edge: try HTTPEdge(configuration))
}
