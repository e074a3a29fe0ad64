import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// Random actions of people on teams, tasks, positions, shares and objects of own kinds, from what their devices show,
/// even if it is outdated.
struct FieldworkPlay: Sendable {
    struct Player: Sendable {
        let id: UUID
        let device: any FieldworkDevice
        /// A manager during the whole run.
        let isManager: Bool
    }

    let players: [Player]
    let kinds: RandomKinds
    /// The version of the schema file for which the apps are made.
    var version = 1
    var random: SplitMix64

    init(players: [Player], kinds: RandomKinds, seed: UInt64) {
        (self.players, self.kinds) = (players, kinds)
        random = SplitMix64(seed: seed)
    }

    /// Tasks whose progress is written on copies only: the last accepted mutation counts.
    static func isForDoers(_ task: UUID) -> Bool { task.uuid.0 % 2 == 1 }

    /// Performs one action of a random person, or switches a device offline or online.
    ///
    /// - Returns: A person who leaves the organisation or returns to it; the caller writes that.
    mutating func step() async throws -> UUID? {
        guard let player = players.randomElement(using: &random) else { return nil }
        if !player.isManager, random.happens(2) { return player.id }
        if random.happens(4) {
            if await player.device.isOnline { await player.device.goOffline() } else { await player.device.goOnline() }
        }
        let contents = await player.device.contents
        let act =
            if random.happens(Self.ownKindPercent) {
                writeOwnKind(contents)
            } else if contents[.manager] != nil, random.happens(60) {
                manage(player, contents)
            } else {
                work(player, contents)
            }
        guard let (realm, mutation) = act else { return nil }
        try await player.device.enqueue([mutation], in: realm)
        return nil
    }

    /// A mutation of an object in a realm.
    typealias Act = (RealmPath, Mutation)

    /// One of a realm's objects of a kind that the device shows, in an order that does not depend on chance.
    mutating func any(_ kind: Kind, in realm: RealmPath, _ contents: [RealmPath: RealmContent]) -> UUID? {
        (contents[realm] ?? [:]).keys.filter { $0.kind == kind }.map(\.id).sorted().randomElement(using: &random)
    }

    private static let time = "2026-03-30T09:40:00.000Z"

    private mutating func progress(by person: UUID) -> String {
        let second = Int.random(in: 10..<60, using: &random)
        return random.happens(75)
            ? "{\"isCompleted\":true,\"completionDate\":\"2026-03-30T09:40:\(second).000Z\","
                + "\"completedBy\":\"\(person.text)\"}"
            : "{\"isCompleted\":false,\"completionDate\":null,\"completedBy\":null}"
    }

    // MARK: Managers

    private mutating func manage(_ player: Player, _ contents: [RealmPath: RealmContent]) -> Act? {
        // A person cannot change their own role.
        let others = players.filter { !$0.isManager && $0.id != player.id }
        if random.happens(4), let other = others.randomElement(using: &random) {
            let role: Role = random.happens(50) ? .manager : .worker
            return (.common, .patch(.person, other.id, "{\"role\":\"\(role.rawValue)\"}"))
        }
        let team = any(.team, in: .common, contents)
        let person = players.randomElement(using: &random)?.id ?? UUID()
        let task = any(.fieldTask, in: .manager, contents)
        func reference(_ id: UUID?) -> String { id.map { "\"\($0.text)\"" } ?? "null" }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<8:
            let id = random.id()
            return (.common, .put(.team, id, "{\"name\":\"Team \(id.text.prefix(4))\"}"))
        case 8..<11: return team.map { (.common, .delete(.team, $0)) }
        case 11..<13: return team.map { (.common, .patch(.team, $0, "{\"backgroundColor\":\"ff8800\"}")) }
        case 13..<33:
            guard let team else { return nil }
            let fields = "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}"
            return (.common, .put(.membership, Membership.id(of: person, in: team), fields))
        case 33..<42: return any(.membership, in: .common, contents).map { (.common, .delete(.membership, $0)) }
        case 42..<65:
            let (team, assignee) = (random.happens(75) ? team : nil, random.happens(60) ? person : nil)
            let fields =
                "{\"title\":\"Task\",\"team\":\(reference(team)),\"assignee\":\(reference(assignee)),"
                + "\"place\":{\"latitude\":34.05,\"longitude\":-118.24}}"
            return (.manager, .put(.fieldTask, random.id(), fields))
        case 65..<72:
            let title = "{\"title\":\"Task \(random.next() % 100)\"}"
            return task.map { (.manager, .patch(.fieldTask, $0, title)) }
        case 72..<82: return task.map { (.manager, .patch(.fieldTask, $0, "{\"team\":\(reference(team))}")) }
        case 82..<90: return task.map { (.manager, .patch(.fieldTask, $0, "{\"assignee\":\"\(person.text)\"}")) }
        case 90..<95:
            guard let task, !Self.isForDoers(task) else { return nil }
            return (.manager, .patch(.fieldTask, task, progress(by: person)))
        default: return task.map { (.manager, .delete(.fieldTask, $0)) }
        }
    }

    // MARK: All people

    private mutating func work(_ player: Player, _ contents: [RealmPath: RealmContent]) -> Act? {
        let own = player.device.realm
        let kind: Kind = random.happens(50) ? .note : .appointment
        let item = any(kind, in: own, contents)
        let shares = contents.keys.filter { $0.realmClass.name == .share }.sorted()
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30:
            let places = contents.keys.filter { $0.realmClass.name == .team }.sorted() + [own]
            guard let place = places.randomElement(using: &random) else { return nil }
            let task = any(.fieldTask, in: place, contents)
            return task.map { (place, .patch(.fieldTask, $0, progress(by: player.id))) }
        case 30..<45:
            let latitude = Double(Int.random(in: -9_000...9_000, using: &random)) / 100
            let fields = "{\"latitude\":\(latitude),\"longitude\":12.5,\"accuracy\":8}"
            return (own, .put(.location, player.id, fields))
        case 45..<47: return (own, .delete(.location, player.id))
        case 47..<60: return (own, .put(kind, random.id(), fields(of: kind)))
        case 60..<68: return item.map { (own, .patch(kind, $0, change(of: kind))) }
        case 68..<71: return item.map { (own, .delete(kind, $0)) }
        case 71..<73:
            guard let id = any(.deletedObject, in: own, contents) else { return nil }
            let held = contents[own]?[ObjectID(kind: .deletedObject, id: id)]
            return held?.decoded(as: DeletedObject.self).flatMap { Mutation.restore(id, $0) }.map { (own, $0) }
        case 73..<88:
            let other = players.randomElement(using: &random)?.id ?? UUID()
            guard let item, other != player.id else { return nil }
            let fields =
                "{\"kind\":\"\(kind.rawValue)\",\"item\":\"\(item.text)\",\"recipient\":\"\(other.text)\","
                + "\"since\":\"\(Self.time)\"}"
            return (own, .put(.sharedItem, SharedItem.id(of: item, with: other), fields))
        case 88..<93: return any(.sharedItem, in: own, contents).map { (own, .delete(.sharedItem, $0)) }
        case 93..<97:
            guard let share = shares.randomElement(using: &random) else { return nil }
            return any(.share, in: share, contents).map { (share, .delete(.share, $0)) }
        default:
            guard let share = shares.randomElement(using: &random) else { return nil }
            return any(kind, in: share, contents).map { (share, .delete(kind, $0)) }
        }
    }

    private mutating func fields(of kind: Kind) -> String {
        kind == .note
            ? "{\"title\":\"Note \(random.next() % 100)\","
                + "\"body\":\"… \\\"quoted\\\" C:\\\\temp\",\"isTask\":true,\"isDone\":false}"
            : "{\"when\":\"\(Self.time)\",\"durationMinutes\":\(random.next() % 90),\"why\":\"Visit\"}"
    }

    private mutating func change(of kind: Kind) -> String {
        kind == .note ? "{\"isDone\":\(random.happens(50))}" : "{\"durationMinutes\":\(random.next() % 90)}"
    }
}
