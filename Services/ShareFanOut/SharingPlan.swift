import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What is written for a batch: each object once.
///
/// A link belongs to the first input that is about it; another one comes again, and finds it done. A share that is made
/// is a decision of its own, since the links of many inputs may count on it: it is written whoever else misses, unless
/// it has changed, and then all of them miss.
struct SharingPlan {
    /// What became of an input's links.
    struct Outcome: Equatable {
        var comesAgain = false
        /// Why a copy is not made that may be made later.
        var waitsFor: LinkRule.Refusal?
    }

    private struct Write {
        let key: ObjectKey
        let fields: CanonicalJSON?
    }

    private struct MadeShare {
        let decision: Int
        let fields: CanonicalJSON
        let guards: [(key: ObjectKey, position: Int64)]
        let realms: [Int32]
    }

    let state: SharingState
    let statements: SharingStatements
    private(set) var batch: WriteBatch
    private var written: Set<ObjectKey> = []
    private var made: [UUID: MadeShare] = [:]
    private var counts: [Int32: Int]
    private var countGuards: [(realm: Int32, count: Int, decision: Int)] = []
    private var expected: Set<ObjectKey> = []

    init(_ state: SharingState, _ statements: SharingStatements, _ batch: WriteBatch) {
        self.state = state
        self.statements = statements
        self.batch = batch
        counts = state.shareCounts
    }

    /// The batch with all guards.
    consuming func finish() -> WriteBatch {
        if !countGuards.isEmpty { batch.expect(statements.expect(countGuards)) }
        return batch
    }

    /// Decides an input's links.
    ///
    /// - Parameter subject: The object that the input is about.
    mutating func settle(_ input: Int, subject: ObjectKey) throws -> Outcome {
        expected = []
        let position = state.links[subject]?.object?.position ?? state.position(subject)
        expect(subject, at: position, input)
        var outcome = Outcome(comesAgain: state.unfinished.contains(input))
        for key in state.inputs[input] ?? [] {
            guard let link = state.links[key] else { continue }
            guard !written.contains(key), let verdict = try settle(link, input) else {
                outcome.comesAgain = true
                continue
            }
            if case .refused(let refusal) = verdict, refusal.mayPass { outcome.waitsFor = refusal }
        }
        return outcome
    }

    /// Decides an input about a share that was ended: its links that are older, and the references to it.
    mutating func end(_ share: UUID, of owner: Owner, _ input: Int) throws -> Outcome {
        guard let key = state.shareKey(share) else { return Outcome() }
        var outcome = try settle(input, subject: key)
        guard let object = state.objects[key], object.isDeleted else { return outcome }
        guard made[share] == nil, written.insert(key).inserted else {
            outcome.comesAgain = true
            return outcome
        }
        let own = ObjectKey(realm: owner.realm, kind: .share, id: share)
        guard let recipient = state.objects[own].flatMap(SharingLoader.recipient) else { return outcome }
        for reference in state.references(to: share, of: owner, with: recipient) {
            expect(reference, at: state.position(reference), input)
            if state.objects[reference]?.fields != nil { batch.delete(reference, decision: input) }
        }
        return outcome
    }

    private mutating func expect(_ key: ObjectKey, at position: Int64, _ decision: Int) {
        if expected.insert(key).inserted { batch.expect(key, at: position, decision: decision) }
    }

    /// - Returns: `nil`: something has to be written before it.
    private mutating func settle(_ link: Link, _ input: Int) throws -> LinkRule.Verdict? {
        let verdict = LinkRule.decide(state.facts(link, room: room(link)), statements.bounds)
        let copies = state.copies[link.key] ?? []
        let writes = try writes(to: link, copies, verdict)
        let lacksShare = verdict == .shared && link.fields.map { !state.hasShare(link, with: $0.recipient) } ?? false
        if writes.isEmpty && !lacksShare { return verdict }
        guard !lacksShare || !removeLeftReferences(link, input) else { return nil }
        written.insert(link.key)
        expect(link.key, at: link.object?.position ?? 0, input)
        let read = [link.itemKey, state.copyKey(link), state.shareKey(link.share)].compactMap(\.self)
        for key in read { expect(key, at: state.position(key), input) }
        for stray in copies { expect(stray.key, at: stray.position, input) }
        if lacksShare { try count(on: link, input) }
        for write in writes {
            if let fields = write.fields {
                batch.put(write.key, fields, decision: input)
            } else {
                batch.delete(write.key, decision: input)
            }
        }
        return verdict
    }

    /// Removes references that outlived their share: a device opens the share's realm when one of them changes, and one
    /// that was left as it is would not tell that the share is there again.
    ///
    /// - Returns: Whether there were any.
    private mutating func removeLeftReferences(_ link: Link, _ input: Int) -> Bool {
        guard let key = state.shareKey(link.share), state.objects[key]?.fields == nil,
            let recipient = link.fields?.recipient
        else { return false }
        let left = state.references(to: link.share, of: link.owner, with: recipient)
            .filter { state.objects[$0]?.fields != nil }
        if left.isEmpty { return false }
        guard written.insert(key).inserted else { return true }
        for object in [key] + left { expect(object, at: state.position(object), input) }
        for reference in left { batch.delete(reference, decision: input) }
        return true
    }

    /// What makes the copies and the link what the verdict says; without fields an object is deleted.
    private func writes(to link: Link, _ copies: [RealmObject], _ verdict: LinkRule.Verdict) throws -> [Write] {
        let copy = verdict == .shared ? state.copyKey(link) : nil
        var writes = copies.filter { $0.key != copy }.map { Write(key: $0.key, fields: nil) }
        let item = link.itemKey.flatMap { state.objects[$0]?.fields }
        if let copy, let item, state.objects[copy]?.fields != item { writes.append(Write(key: copy, fields: item)) }
        guard let stored = link.object?.fields, let fields = link.fields else { return writes }
        let problem: String?
        switch verdict {
        case .ended: return writes + [Write(key: link.key, fields: nil)]
        case .refused(let refusal): problem = refusal.text(statements.bounds)
        case .gone, .waiting, .shared: problem = nil
        }
        guard fields.problem != problem else { return writes }
        let changed = try stored.merging(CanonicalJSON(encoding: ["problem": problem]))
        return writes + [Write(key: link.key, fields: changed)]
    }

    // MARK: Shares

    private func room(_ link: Link) -> LinkRule.Room {
        guard let fields = link.fields, let recipient = state.realms[fields.recipient] else { return .made }
        if made[link.share] != nil || state.shareKey(link.share).flatMap({ state.objects[$0]?.fields }) != nil {
            return .made
        }
        if counts[link.owner.realm] ?? 0 >= statements.bounds.shareCountMax { return .ownerFull }
        return counts[recipient] ?? 0 >= statements.bounds.shareCountMax ? .recipientFull : .free
    }

    /// Makes the link's share if nobody has, and has the input miss when that misses.
    private mutating func count(on link: Link, _ input: Int) throws {
        guard let share = try made[link.share] ?? make(link) else { return }
        for (key, position) in share.guards { expect(key, at: position, input) }
        for realm in share.realms { countGuards.append((realm, state.shareCounts[realm] ?? 0, input)) }
    }

    private mutating func make(_ link: Link) throws -> MadeShare? {
        guard let fields = link.fields, let key = state.shareKey(link.share) else { return nil }
        let stored = state.objects[key]?.fields
        let references = state.references(to: link.share, of: link.owner, with: fields.recipient)
        let share = MadeShare(
            decision: Int(Int32.max) - made.count,
            fields: try stored
                ?? CanonicalJSON(
                    encoding: Share(owner: link.owner.person, recipient: fields.recipient, since: fields.since)),
            guards: ([key] + references).map { ($0, state.position($0)) },
            realms: stored == nil ? references.map(\.realm) : [])
        for (key, position) in share.guards {
            batch.expect(key, at: position, decision: share.decision)
            if state.objects[key]?.fields != share.fields { batch.put(key, share.fields, decision: share.decision) }
        }
        for realm in share.realms {
            counts[realm, default: 0] += 1
            countGuards.append((realm, state.shareCounts[realm] ?? 0, share.decision))
        }
        made[link.share] = share
        return share
    }
}
