import BackendProtocol
import Backends
import Essentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// Edits, deletions and submissions on the device, approvals, refusals, changes and deletions in the back end, lost
/// responses, late commits and crashed workers, in any order. Observations are read at one time and processed later.
@Suite(.ownThreads) struct ObservationSimulationTests {
    /// When the system is idle, the entry equals its record, and every record has an entry.
    @Test(arguments: [1, 2, 3] + Seeds.random(1, for: "observation simulation"))
    func deviceAndBackendConverge(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var statuses: Set<EntryStatus> = []
        for _ in 0..<400 {
            var world = SubmissionWorld(seed: random.next())
            for _ in 0..<20 + Int(random.next() % 100) {
                step(&world, random.next())
                checkOrder(world, seed)
            }
            settle(&world)
            check(world, seed)
            if let status = world.entry?.status { statuses.insert(status) }
        }
        #expect(statuses.isSuperset(of: [.released, .approved, .rejected, .invalid]), "seed \(seed): \(statuses)")
    }

    private func step(_ world: inout SubmissionWorld, _ choice: UInt64) {
        let detail = choice >> 8
        switch choice % 16 {
        case 0: world.edit { $0.durationSeconds = Int(1 + detail % 4) * 1_800 }
        case 1: world.edit { $0.submitRequested = true }
        case 2: if detail % 8 == 0 { world.delete() } else { world.edit { $0.submitRequested = true } }
        case 3, 4: world.decide(.change)
        case 5, 6:
            guard !world.flights.isEmpty else { return }
            let faults = SubmissionWorld.Fault.allCases
            world.fly(
                Int(detail % UInt64(world.flights.count)),
                detail % 3 == 0 ? faults.filter { $0 != .unmade }[Int((detail >> 8) % 8)] : .none)
        case 7:
            guard !world.answers.isEmpty else { return }
            let answer = world.answers.removeFirst()
            world.decide(.result(answer.0, version: answer.version))
        case 8, 9: world.changeInBackEnd(detail)
        case 10: world.read()
        case 11: world.write()
        case 12: if world.isObservationDue { world.observe(.change) }
        case 13:
            guard !world.observationAnswers.isEmpty else { return }
            let answer = world.observationAnswers.removeFirst()
            world.observe(.result(answer.0, version: answer.version))
        case 14:
            guard detail % 4 == 0 else { return }
            for index in world.flights.indices { world.flights[index].isReceived = false }
            // The observation's message is delivered again, to another worker.
            let isObserving = world.flights.contains(where: \.isObservation) || !world.observationAnswers.isEmpty
            world.isObservationDue = world.isObservationDue || isObserving
            world.answers.removeAll()
            world.observationAnswers.removeAll()
        default: world.now += Int(detail % 40)
        }
    }

    private func settle(_ world: inout SubmissionWorld) {
        for _ in 0..<60 {
            while !world.flights.isEmpty || !world.answers.isEmpty || !world.observationAnswers.isEmpty {
                while !world.flights.isEmpty { world.fly(0, .none) }
                while !world.answers.isEmpty {
                    let answer = world.answers.removeFirst()
                    world.decide(.result(answer.0, version: answer.version))
                }
                while !world.observationAnswers.isEmpty {
                    let answer = world.observationAnswers.removeFirst()
                    world.observe(.result(answer.0, version: answer.version))
                }
            }
            world.now += 60
            world.decide(.change)
            // A poll that differs from the observation is an event; a deferred one is retried.
            world.write()
            world.read()
            world.write()
            if world.isObservationDue { world.observe(.change) }
        }
    }

    /// An observation from before a write never overwrites that write.
    private func checkOrder(_ world: SubmissionWorld, _ seed: UInt64) {
        guard world.isRecordOurs, let ledger = world.ledger, ledger.phase == .settled, ledger.backendID != nil,
            ledger.editPosition == world.editPosition, let entry = world.entry, entry.deleteRequested != true,
            let record = world.liveRecords.first
        else { return }
        #expect(entry.durationSeconds == record.desired.durationSeconds, "an older observation won, seed \(seed)")
    }

    private func check(_ world: SubmissionWorld, _ seed: UInt64) {
        #expect(!world.isDead && world.liveRecords.count <= 1, "seed \(seed)")
        guard let entry = world.entry else {
            #expect(world.liveRecords.isEmpty, "a record without its entry, seed \(seed)")
            return
        }
        guard let record = world.liveRecords.first else {
            #expect(entry.backendId == nil, "seed \(seed)")
            #expect([.draft, .invalid].contains(entry.status), "the entry is \(entry.status), seed \(seed)")
            return
        }
        #expect(entry.status == EntryStatus(observed: record.status), "seed \(seed)")
        #expect(entry.durationSeconds == record.desired.durationSeconds && entry.backendId != nil, "seed \(seed)")
        #expect(world.ledger?.confirmed?.status == entry.status, "seed \(seed)")
    }
}

extension SubmissionWorld {
    static let observationRule = ObservationRule(waitMin: .seconds(30), retryMin: .seconds(1), retryMax: .seconds(60))

    /// A colleague approves, rejects, reopens, changes or deletes the record.
    mutating func changeInBackEnd(_ choice: UInt64) {
        guard let id = records.keys.sorted().first(where: { records[$0]?.isLive == true && read($0) != nil }),
            let status = records[id]?.status
        else { return }
        isRecordOurs = false
        switch (choice % 8, status) {
        case (0, _): records[id]?.isLive = false
        case (1, _): records[id]?.desired.durationSeconds = Int(5 + choice / 8 % 4) * 1_800
        case (2...4, .released): records[id]?.status = .approved
        case (5...7, .released): records[id]?.status = .rejected
        default: records[id]?.status = .released
        }
    }

    /// The poller reads; the result is written later.
    mutating func read() {
        guard !isReading else { return }
        isReading = true
        readPosition = position
        inRead = records.keys.sorted().compactMap { read($0) }.first { $0.status != .cancelled }
    }

    mutating func write() {
        guard isReading else { return }
        isReading = false
        if seenRecord != inRead { isObservationDue = true }
        // A contradicting entry is reported again, unless it changed since before the read.
        if let entry, position == readPosition, entry.backendId != nil || inRead != nil,
            inRead.flatMap({ EntryStatus(observed: $0.status) }) != entry.status || entry.backendId != inRead?.id
        {
            isObservationDue = true
        }
        seenRecord = inRead
    }

    mutating func observe(_ origin: ObservationRule.Origin) {
        var record = seenRecord
        if case .result(.record(let current), _) = origin { record = current }
        let state = state()
        let seen = record.map {
            Observation($0, over: entry, confirmed: ledger?.confirmed?.desired, in: ReportingObjects())
        }
        let decision = Self.observationRule.decide(state, observed: seen, origin)
        if case .deferred = decision.step { isObservationDue = true } else { isObservationDue = false }
        commit(decision, isObservation: true)
    }
}
