import ArgumentParser
import Model

/// What is recomputed from other data, and compared with what there is.
enum CheckedPart: String, CaseIterable, Encodable, ExpressibleByArgument {
    case tasks, positions, shares, memberships, catalogues, statuses, submissions, defects, images, changes, devices
    case parked, relay

    /// What is looked at, for people.
    var meaning: String {
        switch self {
        case .tasks: "each master task and its one copy"
        case .positions: "copies of last positions, with managers and teams"
        case .shares: "copies of shared items, and the shares between people"
        case .memberships: "memberships, their people and their teams"
        case .catalogues: "people's catalogues and what is in them"
        case .statuses: "an entry's status and the newest line of its log"
        case .submissions: "the ledger of submissions and entries"
        case .defects: "mirrors of defects and who has them"
        case .images: "which objects name which images"
        case .changes: "objects and the pointers of the change log"
        case .devices: "devices' sequence numbers and their answers"
        case .parked: "parked keys and their objects"
        case .relay: "the relay's place and the counter"
        }
    }

    /// Who writes what differs, and so has to write it anew.
    var repair: RepairWay {
        switch self {
        case .tasks: .decide(Services.taskFanOut, Topics.task)
        case .positions: .decide(Services.locationFanOut, Topics.location)
        case .shares: .decide(Services.shareFanOut, Topics.share)
        case .submissions, .statuses: .decide(Services.entrySubmitter, Topics.entry)
        case .catalogues: .compare(Services.backendPoller)
        case .defects: .compare(Services.defectNotifier)
        case .memberships: .remove
        case .images, .changes: .database
        case .parked: .retry
        case .devices:
            .none(
                "a device sends again what it kept from the expected number on, and goes on under a new clientId where "
                    + "it kept nothing; an answer at a position that is to come is what a restore leaves: stop the "
                    + "services and run fieldpost restore --force")
        case .relay:
            .none("the database has lost what was published: stop the services and run fieldpost restore --force")
        }
    }

    /// Whose work may still take a difference away, once it comes to what was written.
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

/// How a difference is taken away.
enum RepairWay {
    /// The service decides the key anew: it is the only one that writes these objects.
    case decide(ServiceDescription, Topic)
    /// The service compares all that it writes with the other system that it is read from, before its time.
    case compare(ServiceDescription)
    /// What is left of something that was removed is removed too, as a manager does.
    case remove
    /// The rows are the database's own: no service decides them.
    case database
    /// The group that parked it takes it again.
    case retry
    /// Nobody can by itself; the text says what a person does.
    case none(String)

    /// What is done, for people.
    var meaning: String {
        switch self {
        case .decide(let service, _): "\(service.name) decides it anew"
        case .compare(let service): "\(service.name) compares it with what the other system says"
        case .remove: "it is removed, where what it belongs to was"
        case .database: "it is written here"
        case .retry: "it is taken again by who parked it"
        case .none(let what): "not from here: \(what)"
        }
    }
}
