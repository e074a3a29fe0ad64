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
        case .memberships: "memberships and their people"
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
        case .submissions: .decide(Services.entrySubmitter, Topics.entry)
        case .images, .changes: .database
        case .parked: .retry
        case .memberships: .none("a manager, or the directory that keeps teams, takes it away")
        case .catalogues: .none("the next full comparison with the back end (--full-poll-interval) writes it")
        case .statuses: .none("a person compares it with the back end: fieldpost realm show")
        case .defects: .none("the next comparison with the tracker (notifier.comparison.interval) writes it")
        case .devices: .none("a person looks: it is what a restore without fieldpost restore leaves behind")
        case .relay: .none("fieldpost restore, when the database was restored; else a person looks")
        }
    }
}

/// How a difference is taken away.
enum RepairWay {
    /// The service decides the key anew: it is the only one that writes these objects.
    case decide(ServiceDescription, Topic)
    /// The rows are the database's own: no service decides them.
    case database
    /// The group that parked it takes it again.
    case retry
    /// Nobody can by itself; the text says what will.
    case none(String)
}
