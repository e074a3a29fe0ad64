import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The writes of a batch: each object once.
///
/// A link belongs to the first input that concerns it; other inputs are retried and find it processed. A new share is a
/// separate decision, because links of several inputs may depend on it. It is written even if other decisions conflict,
/// unless the share has changed; then all of them conflict.
struct SharingPlan {
    /// The outcome of an input.
    struct Outcome: Equatable {
        var isIncomplete = false
        /// A temporary reason why a copy is not created.
        var rejection: LinkRule.Rejection?
    }

    private struct ObjectWrite {
        let key: ObjectKey
        let fields: CanonicalJSON?
    }

    private struct NewShare {
        let decision: Int
        let fields: CanonicalJSON
        let guards: [(key: ObjectKey, position: Int64)]
        let realms: [Int32]
    }

    let state: SharingState
    let statements: SharingStatements
    /// The time of ends, for people.
    let now: Timestamp
    var batch: WriteBatch
    var written: Set<ObjectKey> = []
    private var newShares: [UUID: NewShare] = [:]
    private var counts: [Int32: Int]
    private var countGuards: [(realm: Int32, count: Int, decision: Int)] = []
    private var expected: Set<ObjectKey> = []

    init(_ state: SharingState, _ statements: SharingStatements, _ batch: WriteBatch, now: Timestamp) {
        self.state = state
        self.statements = statements
        self.now = now
        self.batch = batch
        counts = state.shareCounts
    }

    /// Returns the batch with all guards.
    consuming func finish() -> WriteBatch {
        if !countGuards.isEmpty { batch.expect(statements.expect(countGuards)) }
        return batch
    }

    /// Reconciles an input's links.
    ///
    /// - Parameter subject: The object of the input.
    mutating func reconcile(_ input: Int, subject: ObjectKey) throws -> Outcome {
        expected = []
        let position = state.links[subject]?.object?.position ?? state.position(subject)
        expect(subject, at: position, input)
        var outcome = Outcome(isIncomplete: state.incompleteInputs.contains(input))
        for key in state.inputs[input] ?? [] {
            guard let link = state.links[key] else { continue }
            guard !written.contains(key), let verdict = try reconcile(link, input) else {
                outcome.isIncomplete = true
                continue
            }
            if case .rejected(let rejection) = verdict, rejection.isTemporary { outcome.rejection = rejection }
        }
        if try !restoreLinks(of: subject, input) { outcome.isIncomplete = true }
        return outcome
    }

    /// Processes the end of a share: its older links, and the references to it.
    mutating func end(_ share: UUID, of owner: Owner, _ input: Int) throws -> Outcome {
        guard let key = state.shareKey(share) else { return Outcome() }
        var outcome = try reconcile(input, subject: key)
        // The references have the person who ended the share, until no link remains.
        guard !outcome.isIncomplete, let object = state.objects[key], object.isDeleted else { return outcome }
        guard newShares[share] == nil, written.insert(key).inserted else {
            outcome.isIncomplete = true
            return outcome
        }
        let own = ObjectKey(realm: owner.realm, kind: .share, id: share)
        guard let recipient = state.objects[own].flatMap(SharingLoader.recipient) else { return outcome }
        for reference in state.references(to: share, of: owner, with: recipient) {
            expect(reference, at: state.position(reference), input)
            if state.objects[reference]?.fields != nil { batch.delete(reference, decision: input) }
        }
        try notifyOfEnd(of: share, owner, recipient, input)
        return outcome
    }

    mutating func expect(_ key: ObjectKey, at position: Int64, _ decision: Int) {
        if expected.insert(key).inserted { batch.expect(key, at: position, decision: decision) }
    }

    /// - Returns: `nil` if another write must come first.
    private mutating func reconcile(_ link: Link, _ input: Int) throws -> LinkRule.Verdict? {
        let verdict = LinkRule.decide(state.facts(link, capacity: capacity(of: link)), statements.limits)
        let copies = state.copies[link.key] ?? []
        let writes = try writes(to: link, copies, verdict)
        let lacksShare = verdict == .shared && link.fields.map { !state.hasShare(link, with: $0.recipient) } ?? false
        if writes.isEmpty && !lacksShare { return verdict }
        guard !lacksShare || !removeStaleReferences(link, input) else { return nil }
        written.insert(link.key)
        expect(link.key, at: link.object?.position ?? 0, input)
        let read = [link.itemKey, state.copyKey(link), state.shareKey(link.share)].compactMap(\.self)
        for key in read { expect(key, at: state.position(key), input) }
        for copy in copies { expect(copy.key, at: copy.position, input) }
        if lacksShare { try requireShare(of: link, input) }
        for write in writes {
            if let fields = write.fields {
                batch.put(write.key, fields, decision: input)
            } else {
                batch.delete(write.key, decision: input)
            }
        }
        try recordHistory(of: link, copies, verdict, input)
        return verdict
    }

    /// Removes references that remained after the end of their share: a device opens the share's realm when its
    /// reference changes, and an unchanged one would not report that the share exists again.
    ///
    /// - Returns: Whether there were any.
    private mutating func removeStaleReferences(_ link: Link, _ input: Int) -> Bool {
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

    /// Returns the writes that apply a verdict to the copies and the link.
    private func writes(to link: Link, _ copies: [RealmObject], _ verdict: LinkRule.Verdict) throws -> [ObjectWrite] {
        let copy = verdict == .shared ? state.copyKey(link) : nil
        var writes = copies.filter { $0.key != copy }.map { ObjectWrite(key: $0.key, fields: nil) }
        let item = link.itemKey.flatMap { state.objects[$0]?.fields }
        if let copy, let item, state.objects[copy]?.fields != item {
            writes.append(ObjectWrite(key: copy, fields: item))
        }
        guard let stored = link.object?.fields, let fields = link.fields else { return writes }
        let problem: String?
        switch verdict {
        case .ended: return writes + [ObjectWrite(key: link.key, fields: nil)]
        case .rejected(let rejection): problem = rejection.text(statements.limits)
        case .deleted, .waiting, .shared: problem = nil
        }
        guard fields.problem != problem else { return writes }
        let changed = try stored.merging(CanonicalJSON(encoding: ["problem": problem]))
        return writes + [ObjectWrite(key: link.key, fields: changed)]
    }

    // MARK: Shares

    private func capacity(of link: Link) -> LinkRule.Capacity {
        guard let fields = link.fields, let recipient = state.realms[fields.recipient] else { return .existing }
        if newShares[link.share] != nil || state.shareKey(link.share).flatMap({ state.objects[$0]?.fields }) != nil {
            return .existing
        }
        if counts[link.owner.realm] ?? 0 >= statements.limits.shareCountMax { return .ownerFull }
        return counts[recipient] ?? 0 >= statements.limits.shareCountMax ? .recipientFull : .available
    }

    /// Creates the link's share if it does not exist, and makes the input depend on it.
    private mutating func requireShare(of link: Link, _ input: Int) throws {
        guard let share = try newShares[link.share] ?? createShare(for: link) else { return }
        for (key, position) in share.guards { expect(key, at: position, input) }
        for realm in share.realms { countGuards.append((realm, state.shareCounts[realm] ?? 0, input)) }
    }

    private mutating func createShare(for link: Link) throws -> NewShare? {
        guard let fields = link.fields, let key = state.shareKey(link.share) else { return nil }
        let stored = state.objects[key]?.fields
        let references = state.references(to: link.share, of: link.owner, with: fields.recipient)
        let share = NewShare(
            decision: Int(Int32.max) - newShares.count,
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
        newShares[link.share] = share
        return share
    }
}
