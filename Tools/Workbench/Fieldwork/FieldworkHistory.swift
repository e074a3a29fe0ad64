import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// The accepted mutations: a lower limit of what must be kept, and an upper limit of what people may have seen.
struct FieldworkHistory: Sendable {
    /// The newest progress of each task that was written on a copy, with its position.
    private var progress: [UUID: (position: Int64, fields: JSONObject)] = [:]
    /// All former and current members of each team.
    private var members: [UUID: Set<UUID>] = [:]
    /// All former and current managers.
    private var managers: Set<UUID> = []
    private var owners: [UUID: RealmPath] = [:]
    private var own: OwnKindHistory
    /// All shares ever made, by their ids.
    private var shares: [UUID: Set<UUID>] = [:]
    private(set) var acceptedCount = 0
    /// By code.
    private(set) var rejectedCounts: [String: Int] = [:]

    /// Expected rejections: the device's state was outdated. Others are errors.
    private static let expectedCodes: Set = [
        "realm-not-permitted", "deleted", "unknown-object", "kind-not-allowed", "operation-not-allowed",
        "invalid-field", "name-taken",
    ]

    init(_ kinds: RandomKinds) { own = OwnKindHistory(kinds) }

    var ownKinds: String { own.summary }

    /// Takes the responses to a person's device.
    mutating func take(_ answers: [AnsweredMutation], of player: FieldworkPlay.Player) {
        let person = player.id
        owners[person] = player.device.realm
        if player.isManager { managers.insert(person) }
        for response in answers {
            if case .own = response.mutation.kind {
                own.take(response, of: person, isOwner: response.realm == player.device.realm)
                continue
            }
            switch response.outcome {
            case .accepted(let position):
                acceptedCount += 1
                accepted(response, at: position, of: person)
            case .rejected(let code, _): rejectedCounts[code, default: 0] += 1
            case .expired, nil: break
            }
        }
    }

    /// Excludes what was accepted at positions that a failover lost: devices resend only what they still have.
    mutating func exclude(_ positions: Range<Int64>) {
        progress = progress.filter { !positions.contains($0.value.position) }
        own.exclude(positions)
    }

    private mutating func accepted(_ response: AnsweredMutation, at position: Int64, of person: UUID) {
        let mutation = response.mutation
        guard let fields = mutation.fields.flatMap({ try? JSONObject($0) }) else { return }
        switch (mutation.kind, response.realm.realmClass.name) {
        case (.fieldTask, .team), (.fieldTask, .user):
            // Two mutations in one request both get the position of the later one.
            if progress[mutation.id].map({ $0.position <= position }) ?? true {
                progress[mutation.id] = (position, fields)
            }
        case (.membership, _):
            guard let person = fields.id(of: "person"), let team = fields.id(of: "team") else { return }
            members[person, default: []].insert(team)
        case (.person, _): if fields.text(of: "role") == Role.manager.rawValue { managers.insert(mutation.id) }
        case (.sharedItem, _):
            guard let recipient = fields.id(of: "recipient") else { return }
            let share = Share.id(of: person, with: recipient)
            for side in [person, recipient] { shares[side, default: []].insert(share) }
        default: break
        }
    }

    /// Progress that is missing on the master although it was not overwritten, unexpected rejections, and differences
    /// of own kinds.
    func differences(_ snapshot: EnvironmentSnapshot) -> [String] {
        var differences: [String] = []
        let masters = snapshot.objects(.fieldTask, in: .manager)
        for (task, (position, fields)) in progress where FieldworkPlay.isForDoers(task) {
            guard let master = masters[task] else { continue }
            let isKept = ["isCompleted", "completionDate", "completedBy"].allSatisfy { name in
                let (sent, kept) = (fields.value(of: name), master.value(of: name))
                return sent?.elementsEqual(kept ?? Array((name == "isCompleted" ? "false" : "null").utf8)[...]) ?? true
            }
            if !isKept { differences.append("the progress of \(task.text), accepted at \(position), is lost") }
        }
        for (code, count) in rejectedCounts where !Self.expectedCodes.contains(code) {
            differences.append("\(count) mutations were refused: \(code)")
        }
        differences += own.differences(snapshot) { writer, person, path in
            switch writer {
            case .owner: owners[person] == path
            case .member: members[person]?.contains { .team($0) == path } ?? false
            case .manager: managers.contains(person)
            case .person: path == .common
            }
        }
        return differences.sorted()
    }

    /// Realms that were opened to a person who never had access.
    func differences(of player: FieldworkPlay.Player, opened: Set<RealmPath>) -> [String] {
        opened.sorted().compactMap { path in
            let isTheirs =
                switch path.realmClass {
                case .common, .catalogue: true
                case .user: path == player.device.realm
                case .manager: managers.contains(player.id)
                case .team(let id): members[player.id]?.contains(id) ?? false
                case .share(let id): shares[player.id]?.contains(id) ?? false
                case .users, .archive, .system: false
                }
            return isTheirs ? nil : "\(player.device.person.email) was given \(path)"
        }
    }
}
