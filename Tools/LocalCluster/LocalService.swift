package import Model

/// The properties of services that only development, tests and the checks of deployments use.
extension ServiceDescription {
    /// The external systems of a service, in addition to PostgreSQL, which all use.
    package enum Need: Sendable {
        /// A Kafka cluster.
        case kafka
        /// The environments' back ends.
        case backEnds
        /// The environments' identity providers.
        case identityProviders
    }

    /// An HTTP endpoint of a service for other clients than its operators.
    package struct Endpoint: Sendable {
        /// The name of its port in `.fieldpost/ports`.
        package let name: String
        /// The name in documents and output.
        package let title: String
        /// The environment variable from which tools read its URL.
        package let variable: String
        /// The preferred port of 127.0.0.1 on a developer's machine.
        package let localPort: Int
    }

    /// The value of a setting on one machine.
    package enum LocalValue: Sendable {
        /// A fixed text.
        case text(String)
        /// The URL of the endpoint with this name.
        case url(of: String)
        /// A folder of the sources.
        case folder(String)
        /// Values separated by commas.
        indirect case list([LocalValue])
    }

    package var needs: Set<Need> { local.needs }
    package var endpoint: Endpoint? { local.endpoint }
    /// The preferred port of 127.0.0.1 for its metrics and health on a developer's machine.
    package var localAdminPort: Int { local.adminPort }
    /// Required settings without a default: each variable with its local value.
    package var localSettings: [String: LocalValue] { local.settings }
    /// Settings for demonstrations on a developer's machine (`deploy/up`).
    package var showcaseSettings: [String: LocalValue] { local.showcaseSettings }

    private var local: LocalService {
        guard let local = LocalService.all[name] else { preconditionFailure("\(name) has no row in LocalService.all") }
        return local
    }
}

extension Services {
    /// Returns the services with a need.
    package static func needing(_ need: ServiceDescription.Need) -> [ServiceDescription] {
        all.filter { $0.needs.contains(need) }
    }
}

private struct LocalService: Sendable {
    var needs: Set<ServiceDescription.Need> = []
    var endpoint: ServiceDescription.Endpoint?
    let adminPort: Int
    var settings: [String: ServiceDescription.LocalValue] = [:]
    var showcaseSettings: [String: ServiceDescription.LocalValue] = [:]

    /// The origin of the app that docs/apps/app-in-an-hour.md builds.
    private static let tutorialOrigin = ServiceDescription.LocalValue.text("http://localhost:8000")

    /// A row for each service, by its name.
    static let all = [
        Services.onboarding.name: LocalService(
            needs: [.identityProviders],
            endpoint: ServiceDescription.Endpoint(
                name: "device", title: "onboarding", variable: "ONBOARDING_URL", localPort: 18083),
            adminPort: 18095, settings: ["FIELDPOST_ONBOARDING_URL": .url(of: "device")],
            showcaseSettings: [
                "FIELDPOST_ONBOARDING_DEVICE_PAGE": .text("true"),
                "FIELDPOST_ONBOARDING_DEVICE_GATEWAY": .url(of: "gateway"),
                "FIELDPOST_ONBOARDING_APP_FOLDER": .folder("Services/Onboarding/App"),
                "FIELDPOST_CORS_ORIGINS": tutorialOrigin,
            ]),
        Services.realmGateway.name: LocalService(
            needs: [.identityProviders],
            endpoint: ServiceDescription.Endpoint(
                name: "gateway", title: "device API", variable: "GATEWAY_URL", localPort: 18080),
            adminPort: 18092,
            // The app is served by onboarding, and calls the device API.
            showcaseSettings: ["FIELDPOST_CORS_ORIGINS": .list([.url(of: "device"), tutorialOrigin])]),
        Services.changeRelay.name: LocalService(needs: [.kafka], adminPort: 18091),
        Services.realmInitializer.name: LocalService(needs: [.kafka, .backEnds], adminPort: 18093),
        Services.entrySubmitter.name: LocalService(
            needs: [.kafka, .backEnds], adminPort: 18094,
            // The emulator commits at most one second late, so a short settle time is enough for unknown outcomes.
            showcaseSettings: ["FIELDPOST_SUBMITTER_SETTLE_MIN": .text("5s")]),
        Services.backendPoller.name: LocalService(needs: [.kafka, .backEnds], adminPort: 18096),
        Services.taskFanOut.name: LocalService(needs: [.kafka], adminPort: 18097),
        Services.locationFanOut.name: LocalService(needs: [.kafka], adminPort: 18098),
        Services.shareFanOut.name: LocalService(needs: [.kafka], adminPort: 18099),
        Services.defectNotifier.name: LocalService(needs: [.kafka, .backEnds], adminPort: 18100),
        Services.noticeDeliverer.name: LocalService(needs: [.kafka], adminPort: 18102),
        Services.defectSubmitter.name: LocalService(needs: [.kafka, .backEnds], adminPort: 18101),
        Services.lagMonitor.name: LocalService(needs: [.kafka], adminPort: 18103),
    ]
}
