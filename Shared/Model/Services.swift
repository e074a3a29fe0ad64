/// A service: one folder of `Services/` with one executable, and one row of the catalogue below.
package struct ServiceDescription: Equatable, Sendable {
    /// The name of the executable and of the consumer group.
    package let name: String
    /// The description of the service, in Markdown, after "It".
    package let summary: String
    /// The topics that its consumer group reads.
    package var topics: [Topic] = []
    /// Other triggers than its topics, in Markdown.
    package var sources: [String] = []

    /// The target in Package.swift and the folder in `Services/`: `change-relay` is `ChangeRelay`.
    package var target: String {
        name.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }
}

/// The catalogue of services, in their start order on one machine.
///
/// Topics' consumers, the local cluster, `deploy/up`, the tests that run executables and the tables of `docs/` are
/// generated from it; a test compares it with `Package.swift` and the folders of `Services/`.
package enum Services {
    /// Onboards devices.
    package static let onboarding = ServiceDescription(
        name: "onboarding",
        summary: """
            onboards devices: registers a device, has its person log in at the identity provider (OAuth 2.0 code flow \
            with PKCE, OpenID Connect), and sends it its token and the readiness of its realm
            """,
        sources: ["HTTP", "WebSocket", "PostgreSQL"])

    /// The device API.
    package static let realmGateway = ServiceDescription(
        name: "realm-gateway",
        summary: "serves the device API and PowerSync's protocol: lists of realms, sync, mutations; checks permissions",
        sources: ["HTTP", "PostgreSQL's counters"])

    /// Publishes the transactional outbox of PostgreSQL to Kafka.
    package static let changeRelay = ServiceDescription(
        name: "change-relay",
        summary: """
            publishes changed objects to Kafka in position order, with one leader and standbys; compacts the change \
            log, and removes expired data
            """,
        sources: ["PostgreSQL"])

    /// Initialises realms.
    package static let realmInitializer = ServiceDescription(
        name: "realm-initializer",
        summary: """
            fills an invited person's realm from the back end (tree, contexts with suggestions, template, entries of \
            the last days), then sets `isInitialized`
            """,
        topics: [Topics.realm])

    /// Submits entries.
    package static let entrySubmitter = ServiceDescription(
        name: "entry-submitter",
        summary: """
            validates entries, submits them to the back end once, and reconciles them with the poller's observations; \
            it is the only writer of an entry's outcome (`submitted` and all later statuses), and notifies people of \
            refused, rejected and changed entries
            """,
        topics: [Topics.entry])

    /// Reads back ends.
    package static let backendPoller = ServiceDescription(
        name: "backend-poller",
        summary: """
            polls back ends: for changes if they report them, otherwise for all people's records by date if they list \
            them, and in a full comparison at a longer interval; writes changes of people's choices, and the observed \
            records for `entry-submitter`
            """,
        topics: [Topics.poll])

    /// Copies tasks to their teams and assignees.
    package static let taskFanOut = ServiceDescription(
        name: "task-fan-out",
        summary: """
            maintains the copy of each master task in the realm of its team or assignee, copies completion back to the \
            master, removes copies if their team or person was deleted, and removes memberships of deleted teams and \
            people; notifies people of their tasks
            """,
        topics: [Topics.task, Topics.team])

    /// Copies last positions to managers and teams.
    package static let locationFanOut = ServiceDescription(
        name: "location-fan-out",
        summary: "copies people's last positions to managers and to their teams",
        topics: [Topics.location, Topics.team])

    /// Copies shared items.
    package static let shareFanOut = ServiceDescription(
        name: "share-fan-out",
        summary: """
            maintains the copies of shared appointments and notes for the people they are shared with, and notifies \
            these people
            """,
        topics: [Topics.share])

    /// Notifies people of defects.
    package static let defectNotifier = ServiceDescription(
        name: "defect-notifier",
        summary: """
            notifies people of defects that were assigned to them or changed, and mirrors those that they own or \
            reported: polls HCL Compass for its history, and at a longer interval for all defects, with the \
            environment's account or, without one, with each person's own login
            """,
        topics: [Topics.defectPoll])

    /// Delivers notices outside of devices.
    package static let noticeDeliverer = ServiceDescription(
        name: "notice-deliverer",
        summary: """
            delivers notices as each person chose, by webhook, e-mail and push message: at least once, with a stable \
            id, until the delivery succeeds or the notice expires
            """,
        topics: [Topics.notice])

    /// Executes people's commands at trackers.
    package static let defectSubmitter = ServiceDescription(
        name: "defect-submitter",
        summary: """
            executes people's commands on defects at HCL Compass with their own logins: creates, changes and deletes \
            defects, and reads them, their forms and queries; reports whether the logins are valid
            """,
        topics: [Topics.defect])

    /// Monitors consumer groups.
    package static let lagMonitor = ServiceDescription(
        name: "lag-monitor",
        summary: """
            reports the lag of every consumer group, Fieldpost's and others': in messages, in seconds and as a status, \
            and the deferred keys and unpublished changes; it only reads, except for its synthetic probe
            """,
        sources: ["Kafka's offsets", "PostgreSQL"])

    /// All services.
    package static let all = [
        onboarding, realmGateway, changeRelay, realmInitializer, entrySubmitter, backendPoller, taskFanOut,
        locationFanOut, shareFanOut, defectNotifier, defectSubmitter, noticeDeliverer, lagMonitor,
    ]
}
