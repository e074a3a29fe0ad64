import Essentials
public import FoundationEssentials
public import Model

/// All that a device remembers, as one value: its copy of its realms, its queue of mutations, and what it shows.
///
/// What it shows is the copy as of the last whole checkpoint, with the mutations on top that are not in it yet. It has
/// no clock and does no input or output: whoever owns it reads the stream, sends the requests and stores it.
///
/// Stored at any moment and read again later, it goes on from there, under one condition: a request is sent only after
/// the state it was made of has been stored. Otherwise a number may be given twice, and the server looks at the first
/// mutation only.
public struct DeviceState: Sendable {
    /// The copy as of the last whole checkpoint.
    public private(set) var copy = DeviceCopy()
    /// Mutations on their way, and those that were answered.
    public private(set) var queue: DeviceQueue
    /// Mutations that the copy does not have yet, in their order.
    private var unseen: [ObjectAddress: [QueuedMutation]] = [:]

    /// What changed for whoever looks at the device.
    public struct News: Equatable, Sendable {
        /// The objects that may look different.
        public internal(set) var changed: Set<ObjectAddress> = []
        /// What was told of mutations, in their order.
        public internal(set) var answers: [QueuedMutation] = []
        /// How many mutations the server lost in a restore that the device no longer keeps.
        public internal(set) var lostCount: Int64 = 0
        /// Whether the answer was one to the last request, and said something. If not, wait before the next one.
        public internal(set) var hasMovedOn = true

        /// Nothing new.
        public init() {}

        init(
            changed: Set<ObjectAddress> = [], answers: [QueuedMutation] = [], lostCount: Int64 = 0,
            hasMovedOn: Bool = true
        ) {
            self.changed = changed
            self.answers = answers
            self.lostCount = lostCount
            self.hasMovedOn = hasMovedOn
        }
    }

    /// A new device.
    ///
    /// - Parameters:
    ///   - clientID: Random, and never used before: a device that was installed anew, cloned or restored is new.
    ///   - keptCount: So many answered mutations are kept at least, and at most twice as many.
    public init(clientID: UUID, keptCount: Int = 10_000) {
        queue = DeviceQueue(clientID: clientID, keptCount: keptCount)
    }

    // MARK: What is shown

    /// An object as it is shown; `nil` when there is none.
    public subscript(realm: RealmPath, object: ObjectID) -> HeldObject? {
        let address = ObjectAddress(realm, object)
        return shown(copy[realm, object], with: unseen[address] ?? [])
    }

    /// The objects of a realm as they are shown.
    public func content(of realm: RealmPath) -> RealmContent {
        var content = copy.contents[realm] ?? [:]
        for (address, mutations) in unseen where address.realm == realm {
            content[address.object] = shown(content[address.object], with: mutations)
        }
        return content
    }

    /// The objects of all realms as they are shown. Making it costs what the realms hold in which something is on its
    /// way.
    public var contents: [RealmPath: RealmContent] {
        var contents = copy.contents
        for (address, mutations) in unseen {
            let object = shown(contents[address.realm]?[address.object], with: mutations)
            if object == nil, contents[address.realm] == nil { continue }
            contents[address.realm, default: [:]][address.object] = object
        }
        return contents
    }

    private func shown(_ held: HeldObject?, with mutations: [QueuedMutation]) -> HeldObject? {
        if mutations.isEmpty { return held }
        let fields = mutations.reduce(held?.fields) { fields, item in
            OptimisticRules.fields(after: item.mutation, of: fields)
        }
        return fields.map { HeldObject(position: held?.position ?? 0, fields: $0) }
    }

    /// Whether an object may still become another without anybody else's doing: a mutation of it has no answer, or is
    /// not in the copy, or the server may have lost one.
    public func isUnsettled(_ address: ObjectAddress) -> Bool {
        queue.isInDoubt || queue.holds(address) || unseen[address] != nil
    }

    // MARK: The stream

    /// A stream is to be asked for: lines that come from here on are its.
    ///
    /// - Parameters:
    ///   - isLive: Whether it stays open after its first checkpoint.
    ///   - wanted: The realms that are wanted, at least one and at most ``DeviceCopy/namedCountMax``. Of them those are
    ///     opened that the person may open, now or later, and no others; what is held of others is gone with the next
    ///     checkpoint. `nil`: all that the person has to do with.
    ///   - realmCountMax: The most realms that are named; as many as the gateway takes, unless a test says otherwise.
    /// - Returns: The body of `POST /v1/sync`.
    public mutating func syncRequest(
        isLive: Bool, only wanted: Set<RealmPath>? = nil, realmCountMax: Int = DeviceCopy.namedCountMax
    ) -> [UInt8] {
        let named = copy.streamBegins(only: wanted, realmCountMax: realmCountMax)
        var body = Array("{\"live\":\(isLive)".utf8)
        if let wanted {
            for (index, realm) in wanted.sorted().enumerated() {
                body.append(contentsOf: (index == 0 ? ",\"only\":[" : ",").utf8)
                JSONText.append(realm.description, to: &body)
            }
            body.append(contentsOf: (wanted.isEmpty ? ",\"only\":[]" : "]").utf8)
        }
        for (index, (realm, cursor)) in named.sorted(by: { $0.key < $1.key }).enumerated() {
            body.append(contentsOf: (index == 0 ? ",\"realms\":{" : ",").utf8)
            JSONText.append(realm.description, to: &body)
            body.append(UInt8(ascii: ":"))
            if let cursor { JSONText.append(cursor, to: &body) } else { body.append(contentsOf: "null".utf8) }
        }
        body.append(contentsOf: (named.isEmpty ? "}" : "}}").utf8)
        return body
    }

    /// Takes in one line of the stream.
    ///
    /// - Returns: What changed in what is shown. Afterwards there may be something to send.
    public mutating func take(_ line: SyncLine) -> News {
        if case .open(_, isReset: true) = line { queue.realmWasReset() }
        let before = copy.position
        var news = News(changed: copy.apply(line))
        if copy.position < before {
            // The database is a backup's: what it does not have is on top again.
            news.changed.formUnion(rebuild())
        } else if copy.position > before {
            news.changed.formUnion(dropSeen())
        }
        return news
    }

    // MARK: Mutations

    /// Queues a mutation, which is shown at once.
    ///
    /// - Throws: ``InvalidMutation`` when the server could not read it; then nothing is queued.
    public mutating func enqueue(_ mutation: Mutation, in realm: RealmPath) throws(InvalidMutation) -> News {
        try InvalidMutation.check(mutation)
        let queued = queue.enqueue(mutation, in: realm)
        unseen[queued.address, default: []].append(queued)
        return News(changed: [queued.address])
    }

    /// What to send next to `POST /v1/mutations`; `nil` when there is nothing. Without an answer, ask for it again.
    ///
    /// - Parameter countMax: The most mutations in it; more than ``DeviceQueue/batchCountMax`` are never.
    public mutating func nextRequest(countMax: Int = DeviceQueue.batchCountMax) -> QueueRequest? {
        queue.nextRequest(countMax: countMax)
    }

    /// Takes in the answer to a request.
    ///
    /// - Parameter newClientID: A random id, used when the server has lost more than is kept.
    public mutating func take(_ answer: QueueAnswer, to request: QueueRequest, newClientID: UUID) -> News {
        guard let taken = queue.take(answer, to: request, newClientID: newClientID) else {
            return News(hasMovedOn: false)
        }
        var news = News(answers: taken.answered, lostCount: taken.lostCount)
        if taken.hasGoneBack {
            news.changed = rebuild()
            return news
        }
        for item in taken.answered where answered(item) { news.changed.insert(item.address) }
        news.hasMovedOn = !taken.answered.isEmpty || (request.isQuestion && answer.isResult)
        return news
    }

    /// - Returns: Whether the object may look different: an accepted mutation that the copy does not have yet stays on
    ///   top as it was; one whose checkpoint came before its answer does not.
    private mutating func answered(_ item: QueuedMutation) -> Bool {
        let before = (unseen[item.address] ?? []).map(\.sequence)
        var mutations = (unseen[item.address] ?? []).filter { $0.sequence != item.sequence }
        if isUnseen(item) {
            // One that was rejected before a restore was not among them.
            mutations.append(item)
            mutations.sort { $0.sequence < $1.sequence }
        }
        unseen[item.address] = mutations.isEmpty ? nil : mutations
        return mutations.map(\.sequence) != before
    }

    // MARK: Mutations on top

    /// Whether a mutation is to be shown on top of the copy.
    ///
    /// An accepted one is in every checkpoint at its position or above. A rejected one is not shown, and neither is it
    /// when it is sent again after a restore.
    private func isUnseen(_ item: QueuedMutation) -> Bool {
        switch item.outcome {
        case nil: true
        case .accepted(let position): position > copy.position
        case .rejected, .forgotten: false
        }
    }

    /// - Returns: The objects that may look different: their realm may be closed, or somebody else was later.
    private mutating func dropSeen() -> Set<ObjectAddress> {
        var dropped: Set<ObjectAddress> = []
        for (address, mutations) in unseen {
            let left = mutations.filter(isUnseen)
            guard left.count < mutations.count else { continue }
            unseen[address] = left.isEmpty ? nil : left
            dropped.insert(address)
        }
        return dropped
    }

    /// - Returns: The objects that may look different.
    private mutating func rebuild() -> Set<ObjectAddress> {
        let before = Set(unseen.keys)
        unseen = Dictionary(grouping: queue.remembered.filter(isUnseen), by: \.address)
        return before.union(unseen.keys)
    }
}

extension DeviceState: Equatable, Codable {
    private enum CodingKeys: CodingKey { case copy, queue }

    /// Reads a stored state.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        copy = try container.decode(DeviceCopy.self, forKey: .copy)
        queue = try container.decode(DeviceQueue.self, forKey: .queue)
        _ = rebuild()
    }

    /// Writes what ``init(from:)`` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(copy, forKey: .copy)
        try container.encode(queue, forKey: .queue)
    }
}
