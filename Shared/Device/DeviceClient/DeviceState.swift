import Essentials
public import FoundationEssentials
public import Model

/// The complete state of a device as one value: its copy of its realms, its queue of mutations, and the objects to
/// show.
///
/// It shows the copy of the last consistent checkpoint with the mutations on top that the copy does not contain yet. It
/// has no clock and performs no input or output: its owner reads the stream, sends the requests and stores the value.
///
/// The value can be stored at any time and continues from there when it is loaded, under one condition: a request is
/// sent only after the state from which it was made was stored. Otherwise a number may be allocated twice, and the
/// server processes only the first mutation.
public struct DeviceState: Sendable {
    /// The copy of the last consistent checkpoint.
    public private(set) var copy = DeviceCopy()
    /// Mutations without a result, and completed ones.
    public private(set) var queue: DeviceQueue
    /// Mutations that the copy does not contain yet, in order.
    private var pending: [ObjectAddress: [QueuedMutation]] = [:]

    /// The changes of a step, for the app.
    public struct Update: Equatable, Sendable {
        /// The objects that may have changed.
        public internal(set) var changed: Set<ObjectAddress> = []
        /// Mutations that got their result, in order.
        public internal(set) var answers: [QueuedMutation] = []
        /// The number of mutations that the server lost in a restore and the device no longer stores.
        public internal(set) var lostCount: Int64 = 0
        /// Whether the response belonged to the latest request and made progress. Otherwise wait before the next
        /// request.
        public internal(set) var madeProgress = true

        /// Creates an empty update.
        public init() {}

        init(
            changed: Set<ObjectAddress> = [], answers: [QueuedMutation] = [], lostCount: Int64 = 0,
            madeProgress: Bool = true
        ) {
            self.changed = changed
            self.answers = answers
            self.lostCount = lostCount
            self.madeProgress = madeProgress
        }
    }

    /// Creates a new device.
    ///
    /// - Parameters:
    ///   - clientID: A random id that was never used before: a reinstalled, cloned or restored device is a new one.
    ///   - historyCountMin: The minimum number of completed mutations to store; the maximum is twice as high.
    public init(clientID: UUID, historyCountMin: Int = 10_000) {
        queue = DeviceQueue(clientID: clientID, historyCountMin: historyCountMin)
    }

    // MARK: Shown objects

    /// Returns an object as shown; `nil` if it does not exist.
    public subscript(realm: RealmPath, object: ObjectID) -> DeviceObject? {
        let address = ObjectAddress(realm, object)
        return shown(copy[realm, object], with: pending[address] ?? [])
    }

    /// Returns the objects of a realm as shown.
    public func content(of realm: RealmPath) -> RealmContent {
        var content = copy.contents[realm] ?? [:]
        for (address, mutations) in pending where address.realm == realm {
            content[address.object] = shown(content[address.object], with: mutations)
        }
        return content
    }

    /// The objects of all realms as shown. The cost depends on the size of the realms with pending mutations.
    public var contents: [RealmPath: RealmContent] {
        var contents = copy.contents
        for (address, mutations) in pending {
            let object = shown(contents[address.realm]?[address.object], with: mutations)
            if object == nil, contents[address.realm] == nil { continue }
            contents[address.realm, default: [:]][address.object] = object
        }
        return contents
    }

    private func shown(_ held: DeviceObject?, with mutations: [QueuedMutation]) -> DeviceObject? {
        if mutations.isEmpty { return held }
        let fields = mutations.reduce(held?.fields) { fields, item in
            OptimisticRules.fields(after: item.mutation, of: fields)
        }
        return fields.map { DeviceObject(position: held?.position ?? 0, fields: $0) }
    }

    /// Whether an object may still change without another user's action: a mutation of it has no result, is not in the
    /// copy yet, or may have been lost by the server.
    public func hasUnconfirmedChanges(_ address: ObjectAddress) -> Bool {
        queue.isInDoubt || queue.contains(address) || pending[address] != nil
    }

    // MARK: The stream

    /// Returns the request for a stream; the following lines belong to it.
    ///
    /// - Parameters:
    ///   - isLive: Whether the stream stays open after its first checkpoint.
    ///   - included: The requested realms, from one to ``DeviceCopy/namedCountMax``. Those that the person is permitted
    ///     to open, now or later, are opened, and no others; copies of other realms are removed at the next checkpoint.
    ///     `nil`: all realms of the person.
    ///   - realmCountMax: Maximum number of named realms, by default the gateway's maximum.
    /// - Returns: The body of `POST /v1/sync`.
    public mutating func syncRequest(
        isLive: Bool, only included: Set<RealmPath>? = nil, realmCountMax: Int = DeviceCopy.namedCountMax
    ) -> [UInt8] {
        let named = copy.beginStream(only: included, realmCountMax: realmCountMax)
        var body = Array("{\"live\":\(isLive)".utf8)
        if let included {
            for (index, realm) in included.sorted().enumerated() {
                body.append(contentsOf: (index == 0 ? ",\"only\":[" : ",").utf8)
                JSONText.append(realm.description, to: &body)
            }
            body.append(contentsOf: (included.isEmpty ? ",\"only\":[]" : "]").utf8)
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

    /// Processes one line of the stream.
    ///
    /// - Returns: The changes of shown objects. Afterwards there may be a request to send.
    public mutating func take(_ line: SyncLine) -> Update {
        if case .open(_, isReset: true) = line { queue.realmWasReset() }
        let before = copy.position
        var update = Update(changed: copy.apply(line))
        if copy.position < before {
            // The database was restored from a backup: mutations that it lacks are shown on top again.
            update.changed.formUnion(rebuild())
        } else if copy.position > before {
            update.changed.formUnion(dropConfirmed())
        }
        return update
    }

    // MARK: Mutations

    /// Queues a mutation, which is shown immediately.
    ///
    /// - Throws: ``InvalidMutation`` if the server could not read it; then nothing is queued.
    public mutating func enqueue(_ mutation: Mutation, in realm: RealmPath) throws(InvalidMutation) -> Update {
        try InvalidMutation.check(mutation)
        let queued = queue.enqueue(mutation, in: realm)
        pending[queued.address, default: []].append(queued)
        return Update(changed: [queued.address])
    }

    /// Returns the next request to `POST /v1/mutations`; `nil` if there is none. If it gets no response, request it
    /// again.
    ///
    /// - Parameter countMax: Maximum number of mutations, at most ``DeviceQueue/batchCountMax``.
    public mutating func nextRequest(countMax: Int = DeviceQueue.batchCountMax) -> QueueRequest? {
        queue.nextRequest(countMax: countMax)
    }

    /// Processes the response to a request. `newClientID` is a random id, used if the server has lost mutations that
    /// are no longer stored.
    public mutating func take(_ response: QueueResponse, to request: QueueRequest, newClientID: UUID) -> Update {
        guard let effect = queue.apply(response, to: request, newClientID: newClientID) else {
            return Update(madeProgress: false)
        }
        var update = Update(answers: effect.completed, lostCount: effect.lostCount)
        if effect.isRequeued {
            update.changed = rebuild()
            return update
        }
        for item in effect.completed where completed(item) { update.changed.insert(item.address) }
        update.madeProgress = !effect.completed.isEmpty || (request.isQuery && response.isResult)
        return update
    }

    /// - Returns: Whether the object may have changed: an accepted mutation that the copy does not contain yet stays on
    ///   top; one whose checkpoint came before its result does not.
    private mutating func completed(_ item: QueuedMutation) -> Bool {
        let before = (pending[item.address] ?? []).map(\.sequence)
        var mutations = (pending[item.address] ?? []).filter { $0.sequence != item.sequence }
        if isPending(item) {
            // A mutation that was rejected before a restore was not pending.
            mutations.append(item)
            mutations.sort { $0.sequence < $1.sequence }
        }
        pending[item.address] = mutations.isEmpty ? nil : mutations
        return mutations.map(\.sequence) != before
    }

    // MARK: Mutations on top

    /// Whether a mutation is shown on top of the copy.
    ///
    /// An accepted one is contained in every checkpoint at its position or higher. A rejected one is not shown, even if
    /// it is sent again after a restore.
    private func isPending(_ item: QueuedMutation) -> Bool {
        switch item.outcome {
        case nil: true
        case .accepted(let position): position > copy.position
        case .rejected, .expired: false
        }
    }

    /// - Returns: The objects that may have changed, because their realm was closed or another user changed them later.
    private mutating func dropConfirmed() -> Set<ObjectAddress> {
        var dropped: Set<ObjectAddress> = []
        for (address, mutations) in pending {
            let left = mutations.filter(isPending)
            guard left.count < mutations.count else { continue }
            pending[address] = left.isEmpty ? nil : left
            dropped.insert(address)
        }
        return dropped
    }

    /// - Returns: The objects that may have changed.
    private mutating func rebuild() -> Set<ObjectAddress> {
        let before = Set(pending.keys)
        pending = Dictionary(grouping: queue.storedMutations.filter(isPending), by: \.address)
        return before.union(pending.keys)
    }
}

extension DeviceState: Equatable, Codable {
    private enum CodingKeys: CodingKey { case copy, queue }

    /// Decodes a stored state.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        copy = try container.decode(DeviceCopy.self, forKey: .copy)
        queue = try container.decode(DeviceQueue.self, forKey: .queue)
        _ = rebuild()
    }

    /// Encodes the state.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(copy, forKey: .copy)
        try container.encode(queue, forKey: .queue)
    }
}
