import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// What was accepted of what people did: what must not be lost of it, and what they may have seen at most.
struct FieldworkHistory: Sendable {
    /// The newest progress of each task that was written on a copy, with its position.
    private var progress: [UUID: (position: Int64, fields: JSONObject)] = [:]
    /// Who ever was in a team.
    private var members: [UUID: Set<UUID>] = [:]
    /// Who ever was made a manager.
    private var managers: Set<UUID> = []
    /// Everything that was ever shared: the ids of the shares.
    private var shares: [UUID: Set<UUID>] = [:]
    private(set) var acceptedCount = 0
    /// By code.
    private(set) var rejectedCounts: [String: Int] = [:]

    /// Refusals that say that what a device showed was no longer so. Others would be a mistake.
    private static let expectedCodes: Set = [
        "realm-not-permitted", "deleted", "unknown-object", "kind-not-allowed", "operation-not-allowed",
        "invalid-field", "name-taken",
    ]

    /// Takes what a person's device was answered.
    mutating func take(_ answers: [QueuedMutation], of person: UUID) {
        for answer in answers {
            switch answer.outcome {
            case .accepted(let position):
                acceptedCount += 1
                accepted(answer, at: position, of: person)
            case .rejected(let code, _): rejectedCounts[code, default: 0] += 1
            case .forgotten, nil: break
            }
        }
    }

    private mutating func accepted(_ answer: QueuedMutation, at position: Int64, of person: UUID) {
        let mutation = answer.mutation
        guard let fields = mutation.fields.flatMap({ try? JSONObject($0) }) else { return }
        switch (mutation.kind, answer.realm.realmClass.name) {
        case (.fieldTask, .team), (.fieldTask, .user):
            // Of two in one request both are told the position at which the later one left the task.
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

    /// Progress that is not on the master although nobody wrote another one, and refusals that nobody can explain.
    func differences(_ snapshot: FieldworkSnapshot) -> [String] {
        var differences: [String] = []
        let masters = snapshot.objects(.fieldTask, in: .manager)
        for (task, (position, fields)) in progress where FieldworkPlay.isForDoers(task) {
            guard let master = masters[task] else { continue }
            let isKept = ["isCompleted", "completionDate", "completedBy"].allSatisfy { name in
                let (told, kept) = (fields.value(of: name), master.value(of: name))
                return told?.elementsEqual(kept ?? Array((name == "isCompleted" ? "false" : "null").utf8)[...]) ?? true
            }
            if !isKept { differences.append("the progress of \(task.text), accepted at \(position), is lost") }
        }
        for (code, count) in rejectedCounts where !Self.expectedCodes.contains(code) {
            differences.append("\(count) mutations were refused: \(code)")
        }
        return differences.sorted()
    }

    /// Realms that were opened to somebody who never had to do with them.
    func differences(of player: FieldworkPlay.Player, opened: Set<RealmPath>) -> [String] {
        opened.sorted().compactMap { path in
            let isTheirs =
                switch path.realmClass {
                case .common, .catalogue: true
                case .user: path == player.device.realm
                case .manager: player.isManager || managers.contains(player.id)
                case .team(let id): members[player.id]?.contains(id) ?? false
                case .share(let id): shares[player.id]?.contains(id) ?? false
                case .users, .archive, .system: false
                }
            return isTheirs ? nil : "\(player.device.person.email) was given \(path)"
        }
    }
}
