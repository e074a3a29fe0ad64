import ArgumentParser
import Model

/// A category of data that is recomputed from other data and compared.
enum CheckTarget: String, CaseIterable, Encodable, ExpressibleByArgument {
    case tasks, positions, shares, memberships, catalogues, statuses, submissions, defects, images, changes, devices
    case parked, relay

    /// A description for the help text.
    var summary: String {
        switch self {
        case .tasks: "master tasks, their notes, and the copies of both"
        case .positions: "copies of last positions for managers and teams"
        case .shares: "copies of shared items, and the shares between people"
        case .memberships: "memberships and their people and teams"
        case .catalogues: "people's catalogues and their content"
        case .statuses: "entries' statuses and their status logs"
        case .submissions: "entries and the submission ledger"
        case .defects: "mirrors of defects and their registrations"
        case .images: "objects and the references to their images"
        case .changes: "objects and the pointers of the change log"
        case .devices: "devices' sequence numbers and stored responses"
        case .parked: "deferred keys and their objects"
        case .relay: "the relay's position and the counter"
        }
    }

    /// The way to repair an inconsistency, with the responsible service.
    var repairMethod: RepairMethod {
        switch self {
        case .tasks: .reprocess(Services.taskFanOut, Topics.task)
        case .positions: .reprocess(Services.locationFanOut, Topics.location)
        case .shares: .reprocess(Services.shareFanOut, Topics.share)
        case .submissions, .statuses: .reprocess(Services.entrySubmitter, Topics.entry)
        case .catalogues: .reconcile(Services.backendPoller)
        case .defects: .reconcile(Services.defectNotifier)
        case .memberships: .remove
        case .images, .changes: .rewrite
        case .parked: .retry
        case .devices:
            .manual(
                "a device resends what it queued from the expected number on, or starts with a new clientId if it "
                    + "queued nothing; responses at unallocated positions are the result of a restore: stop the "
                    + "services and run fieldpost restore --force")
        case .relay:
            .manual("the database has lost published changes: stop the services and run fieldpost restore --force")
        }
    }

    /// Services whose pending work may still resolve an inconsistency.
    var workers: [ServiceDescription] {
        switch self {
        case .tasks: [Services.taskFanOut]
        case .positions: [Services.locationFanOut]
        case .shares: [Services.shareFanOut]
        case .submissions, .statuses: [Services.entrySubmitter]
        case .catalogues: [Services.realmInitializer, Services.backendPoller]
        case .defects: [Services.defectNotifier, Services.defectSubmitter]
        case .memberships: [Services.taskFanOut]
        case .images, .changes, .devices, .parked, .relay: []
        }
    }
}

/// A way to repair an inconsistency.
enum RepairMethod {
    /// The service reprocesses the key: it is the only writer of these objects.
    case reprocess(ServiceDescription, Topic)
    /// The service runs its full comparison with the external system now instead of at the next interval.
    case reconcile(ServiceDescription)
    /// The orphan is deleted, as a manager does.
    case remove
    /// This command writes the rows: no service owns them.
    case rewrite
    /// The group that deferred the key retries it.
    case retry
    /// An operator must act; the text has the action.
    case manual(String)

    /// A description for the output of `fieldpost repair --dry-run`.
    var summary: String {
        switch self {
        case .reprocess(let service, _): "\(service.name) reprocesses the key"
        case .reconcile(let service): "\(service.name) compares it with the external system"
        case .remove: "delete it if its person or team was deleted"
        case .rewrite: "rewrite the rows"
        case .retry: "retry the deferred key"
        case .manual(let action): "needs manual action: \(action)"
        }
    }
}
