import Essentials

/// A record, in memory and in the journal.
struct CompassRecord: Codable, Equatable, Sendable {
    var number: Int
    /// The fields that users write, and `State`, `Submitter` and `Owner`; fields without a value are absent.
    var fields: [String: String]
    /// Milliseconds since 1970 by the server's own clock.
    var submittedAtMs: Int64
    /// Grows with every commit.
    var version = 1
    var isDeleted = false
    /// Logins of the users who may read it, and who may change it; `nil`: all.
    var readers: [String]?
    var editors: [String]?

    var id: String { Self.id(ofNumber: number) }

    static func id(ofNumber number: Int) -> String { CompassSchema.idPrefix + padded(number, to: 8) }

    /// The number of an id; `nil` for a text that is none.
    static func number(ofID id: String) -> Int? {
        guard id.hasPrefix(CompassSchema.idPrefix), id.count == CompassSchema.idPrefix.count + 8 else { return nil }
        return Int(id.dropFirst(CompassSchema.idPrefix.count)).flatMap { $0 > 0 ? $0 : nil }
    }

    /// The value of any field, as answers and queries have it.
    func value(_ field: String, _ zone: CompassZone) -> String {
        switch field {
        case "id": id
        case "dbid": String(CompassSchema.dbidBase + number)
        case "record_type": CompassSchema.recordType
        case "is_active": "1"
        case "version", "lock_version": String(version)
        case "Submit_Date": zone.text(submittedAtMs)
        case "ratl_mastership": "<local>"
        case "is_duplicate": "0"
        default: fields[field] ?? ""
        }
    }

    func canBeRead(by user: CompassUser) -> Bool { user.isService == true || readers?.contains(user.name) ?? true }

    func canBeChanged(by user: CompassUser) -> Bool {
        canBeRead(by: user) && (editors?.contains(user.name) ?? true)
    }
}

/// A row of a record's history.
struct CompassHistory: Codable, Equatable, Sendable {
    /// Its dbid.
    var number: Int
    var action: String
    var user: String
    /// When it truly was, in milliseconds since 1970, and what the server's clock showed.
    var atMs: Int64
    var clockMs: Int64
    /// From when queries show it, by a clock that is right.
    var visibleAtMs: Int64
    var oldState: String
    var newState: String
    /// Whose the record was afterwards.
    var owner: String
    /// The fields that got another value.
    var changes: [String: String]

    /// The columns that queries name, with their values.
    static let columns: [String: @Sendable (CompassHistory, CompassZone) -> String] = [
        "history.action_name": { entry, _ in entry.action },
        "history.action_timestamp": { entry, zone in zone.text(entry.clockMs) },
        "history.user_name": { entry, _ in entry.user },
        "history.old_state": { entry, _ in entry.oldState },
        "history.new_state": { entry, _ in entry.newState },
        "history.dbid": { entry, _ in String(entry.number) },
    ]
}

/// A user.
struct CompassUser: Codable, Equatable, Sendable {
    /// The login name, which records have as owner and submitter.
    var name: String
    var fullName: String?
    var password: String
    /// Personal access tokens, as they are sent.
    var tokens: [String]?
    /// Whether records without leave are shown too: a service account.
    var isService: Bool?
}

/// People, and projects with their components.
struct CompassOrganisation: Codable, Sendable {
    var users: [CompassUser]?
    var projects: [String: [String]]?
}
