import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// One phone and one server with all faults between them.
struct SimulatedPhone {
    private struct Act {
        let realm: RealmPath
        let mutation: Mutation
        var isRejected = false
    }

    private var random: SplitMix64
    private let own: RealmPath
    private let shared: RealmPath
    private let gained: RealmPath
    private let clientID: UUID
    private var server: SimulatedServer
    private var backup: SimulatedServer?
    private var device: SimulatedDevice
    /// The person's mutations in order, and whether the person saw that they were rejected.
    private var made: [Act] = []
    /// The last stored state of the device, and the person's mutations up to then.
    private var stored: (device: SimulatedDevice, made: [Act])
    private var stream: SimulatedStream?
    /// A request whose response is in flight, and requests that may arrive again.
    private var late: (request: QueueRequest, answer: QueueResponse)?
    private var sent: [QueueRequest] = []
    /// After a restore the device may not have detected the loss yet.
    private var isDisturbed = false
    /// The person's own objects, which only this device changes.
    private var objects: [ObjectID: SimulatedFields] = [:]
    private(set) var counts: [String: Int] = [:]

    init(seed: UInt64, mistake: Mistake? = nil) throws {
        random = SplitMix64(seed: seed)
        own = try RealmPath.user("ana@example.com")
        (shared, gained) = (.common, .manager)
        clientID = Self.id(1)
        server = SimulatedServer(realms: [own, shared, gained])
        device = SimulatedDevice(DeviceState(clientID: clientID), mistake: mistake)
        stored = (device, [])
    }

    private static func id(_ number: Int) -> UUID {
        let digits = String(number, radix: 16)
        let text = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
        return UUID(uuidString: text) ?? UUID()
    }

    // MARK: Steps

    mutating func step() throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<18: try act()
        case 18..<60: try read()
        case 60..<63: cut()
        case 63..<78: try send()
        case 78..<80: try receiveLate()
        case 80..<82: repeatOld()
        case 82..<86: stored = (device, made)
        case 86..<88: try kill()
        case 88..<95: writeElsewhere()
        case 95..<97: change(permissionOf: gained)
        case 97: compact()
        case 98: backup = server
        default: restore()
        }
        try checkOwnObjects()
    }

    private mutating func count(_ event: String) { counts[event, default: 0] += 1 }

    private func object(_ number: Int) -> ObjectID { ObjectID(kind: .fieldTask, id: Self.id(number)) }

    private mutating func act() throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<6: try actOnOwn()
        case 6:
            let id = object(100 + Int.random(in: 0..<6, using: &random))
            try enqueue(.patch, id, SimulatedServer.rejectedFields, in: shared)
        default:
            let realm = Bool.random(using: &random) ? shared : gained
            let operation = Mutation.Operation.allCases.randomElement(using: &random) ?? .put
            try enqueue(operation, object(100 + Int.random(in: 0..<12, using: &random)), fields(), in: realm)
        }
    }

    private mutating func actOnOwn() throws {
        let id = objects.keys.sorted().randomElement(using: &random)
        guard let id, objects.count > 2 || Bool.random(using: &random) else {
            let new = object(1_000 + made.count)
            return try enqueue(.put, new, fields(), in: own)
        }
        if Int.random(in: 0..<8, using: &random) == 0 {
            return try enqueue(.patch, id, fields().merging(SimulatedServer.rejectedFields) { $1 }, in: own)
        }
        let operation: Mutation.Operation = objects.count > 5 ? .delete : Bool.random(using: &random) ? .put : .patch
        try enqueue(operation, id, fields(), in: own)
    }

    private mutating func fields() -> SimulatedFields {
        var fields: SimulatedFields = [:]
        for name in ["title", "taskDescription", "dueDate"] where Bool.random(using: &random) {
            fields[name] = Int.random(in: 0..<20, using: &random)
        }
        return fields
    }

    private mutating func enqueue(
        _ operation: Mutation.Operation, _ id: ObjectID, _ fields: SimulatedFields, in realm: RealmPath
    ) throws {
        let mutation = Mutation(
            operation: operation, kind: id.kind, id: id.id,
            fields: operation == .delete ? nil : SimulatedServer.bytes(fields))
        made.append(Act(realm: realm, mutation: mutation))
        try device.enqueue(mutation, in: realm)
        if realm == own { Self.apply(mutation, to: &objects) }
        count("mutations")
    }

    /// Recomputes the own objects without rejected mutations.
    private mutating func recomputeObjects() {
        objects = [:]
        for act in made where act.realm == own && !act.isRejected { Self.apply(act.mutation, to: &objects) }
    }

    private static func apply(_ mutation: Mutation, to objects: inout [ObjectID: SimulatedFields]) {
        let id = ObjectID(kind: mutation.kind, id: mutation.id)
        let given = mutation.fields.map(SimulatedServer.fields)
        switch mutation.operation {
        case .put: objects[id] = given
        case .patch: objects[id]?.merge(given ?? [:]) { $1 }
        case .delete: objects[id] = nil
        }
    }

    // MARK: Reading

    private mutating func read() throws {
        if stream?.isEnded ?? true { stream = try opened() }
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            guard let line = stream?.next(server) ?? stream?.keepalive(server) else { return }
            try take(line)
        }
    }

    /// Every fourth request can name at most two of three realms.
    private mutating func opened() throws -> SimulatedStream {
        let countMax = [1, 2, 3, 3, 3, 3, 3, 3].randomElement(using: &random) ?? 3
        return SimulatedStream(server, named: try device.named(countMax: countMax))
    }

    private mutating func take(_ sent: SimulatedStream.Line) throws {
        let before = device.state.copy.contents
        device.take(sent.line)
        count("lines")
        let after = device.state.copy.contents.filter { !$0.value.isEmpty }
        if let content = sent.content {
            count("checkpoints")
            let expected = content.filter { !$0.value.isEmpty }
            guard after == expected else {
                throw Violation(.consistentCheckpoints, "a checkpoint shows \(after) instead of \(expected)")
            }
        } else {
            var expected = before.filter { !$0.value.isEmpty }
            if case .closed(let path) = sent.line { expected[path] = nil }
            guard after == expected else { throw Violation(.nothingInBetween, "\(sent.line) shows half a checkpoint") }
        }
    }

    private mutating func cut() {
        stream = nil
        if Int.random(in: 0..<4, using: &random) == 0 { change(permissionOf: gained) }
        count("cuts")
    }

    // MARK: Sending

    private mutating func send() throws {
        guard let request = try device.nextRequest(countMax: Int.random(in: 1...5, using: &random)) else { return }
        // The request was stored before sending.
        if device.mistake != .storesLate { stored = (device, made) }
        sent = sent.suffix(20) + [request]
        switch Int.random(in: 0..<6, using: &random) {
        case 0: count("requests lost")
        case 1:
            _ = server.apply(request, of: clientID)
            count("responses lost")
        case 2: late = (request, server.apply(request, of: clientID))
        case 3:
            _ = server.apply(request, of: clientID)
            try receive(server.apply(request, of: clientID), to: request)
        default: try receive(server.apply(request, of: clientID), to: request)
        }
    }

    private mutating func receive(_ answer: QueueResponse, to request: QueueRequest) throws {
        let update = device.take(answer, to: request, newClientID: Self.id(2))
        if case .gap = answer { count("gaps") }
        for item in update.answers where item.isRejected && item.realm == own {
            let index = Int(item.sequence) - 1
            guard made.indices.contains(index) else {
                throw Violation(
                    .processedOnce, "the device got a result of mutation \(item.sequence), which was never made")
            }
            made[index].isRejected = true
            recomputeObjects()
            count("own mutations rejected")
        }
        guard device.state.queue.clientID == clientID, update.lostCount == 0 else {
            throw Violation(.processedOnce, "the queue replaces its client id although nothing is missing")
        }
    }

    /// The response comes late, possibly after the next request.
    private mutating func receiveLate() throws {
        guard let late else { return }
        self.late = nil
        try receive(late.answer, to: late.request)
        count("late responses")
    }

    /// A request arrives again; its response is lost.
    private mutating func repeatOld() {
        guard let request = sent.randomElement(using: &random) else { return }
        _ = server.apply(request, of: clientID)
        count("repeats")
    }

    // MARK: Restarts and faults

    private mutating func kill() throws {
        stream = nil
        late = nil
        made = stored.made
        recomputeObjects()
        device.wake(from: stored.device)
        count("kills")
        guard Int.random(in: 0..<8, using: &random) == 0 else { return }
        let bytes = try JSONEncoder().encode(device.state)
        guard try JSONDecoder().decode(DeviceState.self, from: bytes) == device.state else {
            throw Violation(.storedStateRoundTrips, "the decoded state differs from the stored one")
        }
        count("states stored and reloaded")
    }

    private mutating func writeElsewhere(isDelete: Bool = false) {
        let realm = Bool.random(using: &random) ? shared : gained
        let id = object(100 + Int.random(in: 0..<12, using: &random))
        let isDelete = isDelete || Int.random(in: 0..<3, using: &random) == 0
        server.write(isDelete ? nil : fields(), to: id, in: realm)
    }

    private mutating func change(permissionOf path: RealmPath) {
        if server.permitted.remove(path) == nil { server.permitted.insert(path) }
        count("permissions")
    }

    /// Recently deleted objects have no tombstone any more: only a reset removes them.
    private mutating func compact() {
        for _ in 0..<Int.random(in: 0..<4, using: &random) { writeElsewhere(isDelete: true) }
        server.compact()
        count("compactions")
    }

    private mutating func restore() {
        guard let backup, Int.random(in: 0..<3, using: &random) == 0 else { return }
        server.restore(backup)
        isDisturbed = true
        // A restored database has no earlier connection over which an old request could arrive.
        sent = []
        count("restores")
    }

    // MARK: Checks

    /// The person's changes of their own objects are always shown, in any state of the requests.
    private mutating func checkOwnObjects() throws {
        guard !isDisturbed, let id = objects.keys.min() else { return }
        let shown = device[own, id].map { SimulatedServer.fields($0.fields) }
        guard shown == objects[id] else {
            throw Violation(.ownChangesAreShown, "\(id) is shown as \(shown ?? [:]) instead of \(objects[id] ?? [:])")
        }
    }

    /// Runs without faults until nothing is left to do; then compares everything.
    mutating func rest() throws {
        late = nil
        for _ in 0..<10_000 {
            if stream?.isEnded ?? true { stream = try opened() }
            if let line = stream?.next(server) {
                try take(line)
            } else if let request = try device.nextRequest() {
                try receive(server.apply(request, of: clientID), to: request)
            } else if let stream, !stream.isEnded {
                if let line = stream.keepalive(server) { try take(line) }
                stored = (device, made)
                return try checkWhenIdle()
            }
        }
        throw Violation(.becomesIdle, "the device does not become idle")
    }

    /// Restores a backup while the device has nothing to send, so that only reset realms indicate it. Every second time
    /// only the last result is lost, and its mutation is reprocessed after another user's change.
    mutating func restoreWhenIdle() throws {
        if Bool.random(using: &random) {
            let recent = server
            try act()
            try rest()
            server.restore(recent)
            writeElsewhere()
            count("last results lost")
        } else {
            guard let backup else { return }
            server.restore(backup)
        }
        (isDisturbed, sent) = (true, [])
        count("restores when idle")
        try rest()
    }

    private mutating func checkWhenIdle() throws {
        isDisturbed = false
        count("idle phases")
        let client = server.clients[clientID] ?? SimulatedServer.Client()
        guard client.processed == made.map(\.mutation) else {
            throw Violation(.processedOnce, "\(made.count) mutations were made, \(client.processed.count) processed")
        }
        guard device.state.queue.storedMutations.map(\.outcome) == client.results.map(Optional.some) else {
            throw Violation(.resultsReported, "the device's results differ from the server's")
        }
        guard Set(device.state.copy.contents.keys) == server.permitted else {
            throw Violation(.shownWhenIdle, "the device holds \(device.state.copy.contents.keys)")
        }
        let content = server.content
        for path in [own, shared, gained] {
            guard device.content(of: path) == content[path] ?? [:] else {
                throw Violation(.shownWhenIdle, "\(path) is shown as \(device.content(of: path))")
            }
        }
        for (id, _) in device.content(of: own) {
            guard !device.state.hasUnconfirmedChanges(ObjectAddress(own, id)) else {
                throw Violation(.shownWhenIdle, "\(id) is still pending")
            }
        }
    }
}
