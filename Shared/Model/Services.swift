/// A service: one folder of `Services/` with one executable, and one row of the catalogue below.
package struct ServiceDescription: Equatable, Sendable {
    /// What a service talks to, beside PostgreSQL, which all do.
    package enum Need: Sendable {
        /// A Kafka cluster.
        case kafka
        /// The environments' back ends.
        case backEnds
        /// The environments' identity providers.
        case identityProviders
    }

    /// What a service offers over HTTP to others than its operators.
    package struct Endpoint: Equatable, Sendable {
        /// The name of its port in `.fieldpost/ports`.
        package let name: String
        /// What people call it.
        package let title: String
        /// The environment variable under which tools find its address.
        package let variable: String
        /// The port of 127.0.0.1 that is tried first on a developer's machine.
        package let localPort: Int
    }

    /// The value of a setting on one machine.
    package enum LocalValue: Equatable, Sendable {
        /// This text.
        case text(String)
        /// The address of the endpoint with this name.
        case url(of: String)
    }

    /// The executable's name, which is that of its consumer group as well.
    package let name: String
    /// What it does, in Markdown, after "It".
    package let summary: String
    /// The topics it reads, as the consumer group of its name.
    package let topics: [Topic]
    /// What makes it work beside its topics, in Markdown.
    package let sources: [String]
    package let needs: Set<Need>
    package let endpoint: Endpoint?
    /// The port of 127.0.0.1 for its metrics and health that is tried first on a developer's machine.
    package let localAdminPort: Int
    /// Settings without which it does not start, where there is no default: each variable with its local value.
    package let localSettings: [String: LocalValue]
    /// Settings that make it more pleasant to look at on a developer's machine (`deploy/up`).
    package let showcaseSettings: [String: LocalValue]

    /// A row of the catalogue.
    package init(
        name: String, summary: String, topics: [Topic] = [], sources: [String] = [], needs: Set<Need> = [],
        endpoint: Endpoint? = nil, localAdminPort: Int, localSettings: [String: LocalValue] = [:],
        showcaseSettings: [String: LocalValue] = [:]
    ) {
        self.name = name
        self.summary = summary
        self.topics = topics
        self.sources = sources
        self.needs = needs
        self.endpoint = endpoint
        self.localAdminPort = localAdminPort
        self.localSettings = localSettings
        self.showcaseSettings = showcaseSettings
    }

    /// The target in Package.swift and the folder in `Services/`: `change-relay` is `ChangeRelay`.
    package var target: String {
        name.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
}

/// The catalogue of services, in the order in which they are started on one machine.
///
/// Topics' consumers, the local cluster, `deploy/up`, the tests that run executables and the tables of `docs/` are made
/// from it; a test compares it with `Package.swift` and the folders of `Services/`.
package enum Services {
    /// Lets devices in.
    package static let onboarding = ServiceDescription(
        name: "onboarding",
        summary: """
            lets a device in: registers it, has its person log in at the identity provider (OAuth 2.0 code flow with \
            PKCE, OpenID Connect), tells it its token and when its realm is ready
            """,
        sources: ["HTTP", "WebSocket", "PostgreSQL"], needs: [.identityProviders],
        endpoint: ServiceDescription.Endpoint(
            name: "device", title: "onboarding", variable: "ONBOARDING_URL", localPort: 18083),
        localAdminPort: 18095, localSettings: ["FIELDPOST_ONBOARDING_URL": .url(of: "device")],
        showcaseSettings: [
            "FIELDPOST_ONBOARDING_DEVICE_PAGE": .text("true"),
            "FIELDPOST_ONBOARDING_DEVICE_GATEWAY": .url(of: "gateway"),
        ])

    /// The device API.
    package static let realmGateway = ServiceDescription(
        name: "realm-gateway",
        summary: "the device API: which realms, the sync stream, mutations; permissions",
        sources: ["HTTP", "PostgreSQL's counters"], needs: [.identityProviders],
        endpoint: ServiceDescription.Endpoint(
            name: "gateway", title: "device API", variable: "GATEWAY_URL", localPort: 18080),
        localAdminPort: 18092)

    /// From PostgreSQL to Kafka.
    package static let changeRelay = ServiceDescription(
        name: "change-relay",
        summary: """
            publishes changed objects to Kafka in position order; one is active, others stand by; compacts the change \
            log, and removes what is old
            """,
        sources: ["PostgreSQL"], needs: [.kafka], localAdminPort: 18091)

    /// Fills realms.
    package static let realmInitializer = ServiceDescription(
        name: "realm-initializer",
        summary: """
            fills an invited person's realm from the back end (tree, contexts with suggestions, template, entries of \
            the last days), then sets `isInitialized`
            """,
        topics: [Topics.realm], needs: [.kafka, .backEnds], localAdminPort: 18093)

    /// Submits entries.
    package static let entrySubmitter = ServiceDescription(
        name: "entry-submitter",
        summary: """
            checks entries, submits them to the back end once, and judges what the poller saw of them; what came of an \
            entry (`submitted` and all that follows) is its word alone
            """,
        topics: [Topics.entry], needs: [.kafka, .backEnds], localAdminPort: 18094,
        // The stand-in commits late by a second at most: what is unknown need not be left alone for longer.
        showcaseSettings: ["FIELDPOST_SUBMITTER_SETTLE_MIN": .text("5s")])

    /// Reads back ends.
    package static let backendPoller = ServiceDescription(
        name: "backend-poller",
        summary: """
            asks back ends again and again, for what has changed where they can tell, else for everybody's records by \
            date where they list them, and on a slower beat for everything: writes what changed of people's choices, \
            and what it saw of their records, for `entry-submitter` to judge
            """,
        topics: [Topics.poll], needs: [.kafka, .backEnds], localAdminPort: 18096)

    /// Keeps copies of tasks.
    package static let taskFanOut = ServiceDescription(
        name: "task-fan-out",
        summary: """
            keeps the one copy of each master task where its team or its assignee sees it, carries completion back to \
            the master, lets go of tasks whose team or person is gone, and removes the memberships of deleted teams \
            and people
            """,
        topics: [Topics.task, Topics.team], needs: [.kafka], localAdminPort: 18097)

    /// Shows last positions.
    package static let locationFanOut = ServiceDescription(
        name: "location-fan-out",
        summary: "shows people's last positions to managers and to their teams",
        topics: [Topics.location, Topics.team], needs: [.kafka], localAdminPort: 18098)

    /// Keeps copies of what is shared.
    package static let shareFanOut = ServiceDescription(
        name: "share-fan-out",
        summary: "keeps the copies of shared appointments and notes with those they are shared with",
        topics: [Topics.share], needs: [.kafka], localAdminPort: 18099)

    /// Tells of defects.
    package static let defectNotifier = ServiceDescription(
        name: "defect-notifier",
        summary: """
            tells people of defects that were assigned to them or changed, and mirrors those that they own or \
            reported: asks HCL Compass for its history since the last round, and on a slower beat for all defects, \
            with the environment's account or, where there is none, with each person's own login
            """,
        topics: [Topics.defectPoll], needs: [.kafka, .backEnds], localAdminPort: 18100)

    /// Carries notices outside.
    package static let noticeDeliverer = ServiceDescription(
        name: "notice-deliverer",
        summary: """
            carries notices outside as each person chose, by webhook, e-mail and web push: at least once, under an id \
            that stays the same, until it went or its age is over
            """,
        topics: [Topics.notice], needs: [.kafka], localAdminPort: 18102)

    /// Carries people's commands to trackers.
    package static let defectSubmitter = ServiceDescription(
        name: "defect-submitter",
        summary: """
            does at HCL Compass what people want to be done with defects, as themselves: creates, changes, deletes, \
            and reads what can be chosen; says whether their own logins are good
            """,
        topics: [Topics.defect], needs: [.kafka, .backEnds], localAdminPort: 18101)

    /// Tells how the others fare.
    package static let lagMonitor = ServiceDescription(
        name: "lag-monitor",
        summary: """
            tells how far every consumer group is behind, Fieldpost's and others': in messages and in seconds, whether \
            it keeps up, and what is parked or not published yet; it reads only, but for the notes of its probe
            """,
        sources: ["Kafka's offsets", "PostgreSQL"], needs: [.kafka], localAdminPort: 18103)

    /// All services.
    package static let all = [
        onboarding, realmGateway, changeRelay, realmInitializer, entrySubmitter, backendPoller, taskFanOut,
        locationFanOut, shareFanOut, defectNotifier, defectSubmitter, noticeDeliverer, lagMonitor,
    ]

    /// Those that talk to something.
    package static func needing(_ need: ServiceDescription.Need) -> [ServiceDescription] {
        all.filter { $0.needs.contains(need) }
    }
}
