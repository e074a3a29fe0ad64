import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// The access of people to tasks, positions and shares, evaluated directly from the objects that people write. It is
/// independent of the services, which are compared with it.
struct FieldworkReading {
    let snapshot: EnvironmentSnapshot
    private let people: Set<UUID>
    private let managers: Set<UUID>
    private let teams: Set<UUID>
    /// The people of each team that is there.
    private let members: [UUID: Set<UUID>]
    /// The owners of realms.
    private let owners: [RealmPath: UUID]

    init(_ snapshot: EnvironmentSnapshot) {
        self.snapshot = snapshot
        let persons = snapshot.objects(.person, in: .common)
        people = Set(persons.keys)
        managers = Set(persons.filter { ["manager", "admin"].contains($0.value.text(of: "role") ?? "") }.keys)
        let teams = Set(snapshot.objects(.team, in: .common).keys)
        var members: [UUID: Set<UUID>] = [:]
        for fields in snapshot.objects(.membership, in: .common).values {
            guard let person = fields.id(of: "person"), let team = fields.id(of: "team"), teams.contains(team) else {
                continue
            }
            members[team, default: []].insert(person)
        }
        self.teams = teams
        self.members = members
        owners = Dictionary(
            snapshot.emails.compactMap { id, email in (try? RealmPath.user(email)).map { ($0, id) } },
            uniquingKeysWith: { first, _ in first })
    }

    /// The person whose own realm it is.
    func person(of realm: RealmPath) -> UUID? { owners[realm] }

    private func own(_ person: UUID) -> RealmPath? {
        snapshot.emails[person].flatMap { try? RealmPath.user($0) }
    }

    // MARK: Copies

    /// The copies that there are to be, as realm, kind, id and fields in a line; and what is wrong with what people
    /// wrote although a service sees to it.
    func copies() -> (lines: Set<String>, problems: [String]) {
        var (lines, problems) = (Set<String>(), [String]())
        func expect(_ kind: Kind, _ id: UUID, _ fields: JSONObject, in path: RealmPath?) {
            guard let path else { return }
            lines.insert(Self.line(path, kind, id, fields.bytes))
        }
        for (id, task) in snapshot.objects(.fieldTask, in: .manager) {
            let (team, assignee) = (task.id(of: "team"), task.id(of: "assignee"))
            if let team, !teams.contains(team) { problems.append("the task \(id.text) names a team that is gone") }
            let isOutsider = assignee.map { assignee in
                !people.contains(assignee) || team.map { members[$0]?.contains(assignee) != true } ?? false
            }
            if isOutsider == true {
                problems.append("the task \(id.text) has an assignee who cannot do it")
            }
            expect(.fieldTask, id, task, in: team.map(RealmPath.team) ?? assignee.flatMap(own))
        }
        for person in people {
            guard let own = own(person), let location = snapshot.objects(.location, in: own)[person] else { continue }
            expect(.location, person, location, in: .manager)
            for (team, members) in members where members.contains(person) {
                expect(.location, person, location, in: .team(team))
            }
        }
        for (owner, email) in snapshot.emails {
            guard let own = try? RealmPath.user(email) else { continue }
            for link in snapshot.objects(.sharedItem, in: own).values {
                guard let item = link.id(of: "item"), let recipient = link.id(of: "recipient"),
                    let kind = link.text(of: "kind").flatMap(Kind.init(rawValue:)), snapshot.emails[recipient] != nil,
                    let fields = snapshot.objects(kind, in: own)[item]
                else { continue }
                let share = RealmPath.share(Share.id(of: owner, with: recipient))
                if snapshot.objects(.share, in: share).isEmpty { problems.append("\(share) has no Share") }
                expect(kind, item, fields, in: share)
            }
        }
        for path in snapshot.realms.keys {
            guard case .share(let id) = path.realmClass, let share = snapshot.objects(.share, in: path)[id] else {
                continue
            }
            expect(.share, id, share, in: path)
            let sides = ["owner", "recipient"].compactMap { share.id(of: $0) }
            let realms = sides.compactMap(own)
            if realms.count < 2 { problems.append("\(path) has a Share with an unknown person") }
            if realms.count == 2, id != Share.id(of: sides[0], with: sides[1]) {
                problems.append("\(path) has a Share whose id is not that of its two people")
            }
            for realm in realms { expect(.share, id, share, in: realm) }
        }
        return (lines, problems)
    }

    /// The copies that there are.
    func found() -> Set<String> {
        var lines: Set<String> = []
        for (path, content) in snapshot.realms {
            for (object, held) in content where Self.isCopy(object.kind, in: path.realmClass) {
                lines.insert(Self.line(path, object.kind, object.id, held.fields))
            }
        }
        return lines
    }

    private static func isCopy(_ kind: Kind, in realm: RealmClass) -> Bool {
        if case .own = kind { return false }
        return switch realm {
        case .user: [.fieldTask, .share].contains(kind)
        case .manager: kind == .location
        case .team, .share: true
        case .users, .catalogue, .common, .archive, .system: false
        }
    }

    private static func line(_ path: RealmPath, _ kind: Kind, _ id: UUID, _ fields: [UInt8]) -> String {
        "\(path) \(kind.rawValue) \(id.text) \(String(decoding: fields, as: UTF8.self))"
    }

    /// The differences between existing and expected copies, a line each.
    func differences() -> [String] {
        let ((expected, problems), found) = (copies(), found())
        return problems.sorted() + expected.subtracting(found).sorted().map { "missing: \($0)" }
            + found.subtracting(expected).sorted().map { "not to be there: \($0)" }
    }

    // MARK: Devices

    /// The realms that a person's device holds without naming any.
    func realms(of person: UUID) -> Set<RealmPath> {
        guard let own = own(person) else { return [] }
        var realms: Set = [own, .common]
        if managers.contains(person) { realms.insert(.manager) }
        for (team, members) in members where members.contains(person) { realms.insert(.team(team)) }
        for id in snapshot.objects(.share, in: own).keys where snapshot.objects(.share, in: .share(id))[id] != nil {
            realms.insert(.share(id))
        }
        for user in snapshot.objects(.user, in: own).values {
            if let catalogue = user.id(of: "catalogue") { realms.insert(.catalogue(catalogue)) }
        }
        return realms
    }

    /// As ``realms(of:)``, for a device that holds some already.
    func realms(of person: UUID, device: [RealmPath: RealmContent]) -> Set<RealmPath> {
        let realms = realms(of: person)
        // A team that a manager once was in is theirs to hold as long as it is there: the device names what it holds.
        guard managers.contains(person) else { return realms }
        return realms.union(teams.map(RealmPath.team).filter { device[$0] != nil })
    }

    /// Realms of which a device holds something, and should not, a line each.
    func strange(to person: UUID, device: [RealmPath: RealmContent]) -> [String] {
        let expectedPaths = realms(of: person, device: device)
        return device.filter { !expectedPaths.contains($0.key) && !$0.value.isEmpty }.keys.sorted()
            .map { "holds \($0)" }
    }

    /// The unexpected and the missing objects of a device.
    func differences(of person: UUID, device: [RealmPath: RealmContent]) -> [String] {
        let name = snapshot.emails[person] ?? person.text
        let expectedPaths = realms(of: person, device: device)
        var differences = strange(to: person, device: device).map { "\(name) \($0)" }
        for path in expectedPaths {
            let (held, stored) = (device[path] ?? [:], snapshot.realms[path] ?? [:])
            for (object, there) in stored where held[object]?.fields != there.fields {
                differences.append("\(name) has not \(path) \(object) as it is")
            }
            for object in held.keys where stored[object] == nil {
                differences.append("\(name) has \(path) \(object), which is gone")
            }
        }
        return differences.sorted()
    }
}
