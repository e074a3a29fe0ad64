import Backends
import Essentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

@Suite(.ownThreads) struct SubmissionSimulationTests {
    /// At every step, regardless of crashes, repetitions, reordering and delays:
    ///
    /// 1. The back end has at most one live record of the entry.
    /// 2. At most one write can be in flight whose result is not recorded.
    /// 3. A `released` entry has a live record with the confirmed values.
    /// 4. Only a refusal or the entry's own problem makes it `invalid`.
    /// 5. The content of a result is kept, also if the call that follows from it cannot be made.
    ///
    /// After the faults stop and time passes, the back end has the device's version, or the entry is invalid with a
    /// message, and no key is dead-lettered. The newest edit has reached the back end, or was refused itself: no other
    /// edit's refusal reverted it. The newest log line has the status.
    @Test(arguments: [1, 2, 713_318_241_000_326_089] + Seeds.random(1, for: "submission simulation"))
    func entryHasOneRecordAfterAnyFaults(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var stepCount = 0
        while stepCount < 30_000 {
            let worldSeed = random.next()
            var world = SubmissionWorld(seed: worldSeed)
            world.alters = worldSeed.isMultiple(of: 4)
            let steps = 20 + Int(random.next() % 100)
            for _ in 0..<steps {
                let action = random.next()
                // Odd seeds run without such calls.
                step(&world, action, unmakes: seed.isMultiple(of: 2))
                stepCount += 1
                check(world, seed)
            }
            settle(&world, &random)
            checkSettled(world, seed)
        }
    }

    private func step(_ world: inout SubmissionWorld, _ choice: UInt64, unmakes: Bool) {
        let detail = choice >> 8
        switch choice % 16 {
        case 0:
            switch detail % 8 {
            // Also with the flag omitted, removed and restored, as by phones that were offline.
            case 0: world.write(.patch, #"{"submitRequested": false}"#)
            case 1: world.write(.patch, #"{"submitRequested": false, "text": "old draft"}"#)
            case 2: world.write(.put, #"{"text": "put", "entryDate": "2013-10-22", "durationSeconds": 900}"#)
            case 3: world.write(.patch, #"{"submitRequested": null, "text": "null"}"#)
            default: world.edit { $0.text = "text \(detail % 5)" }
            }
        case 1: world.edit { $0.durationSeconds = Int(detail % 4) * 1_800 }
        case 2, 3: world.write(.patch, #"{"submitRequested": true}"#)
        case 4: if detail % 6 == 0 { world.delete() } else if detail % 6 < 3 { world.isAssigned.toggle() }
        case 5, 6, 7:
            // A worker evaluates; sometimes the phone's patch is committed between its load and its commit, or another
            // worker decides meanwhile.
            switch detail % 4 {
            case 0: world.decide(.change) { $0.edit { $0.text = "between" } }
            case 1: world.decide(.change) { $0.decide(.change) }
            default: world.decide(.change)
            }
        case 8, 9, 10:
            guard !world.flights.isEmpty else { return }
            let faults = SubmissionWorld.Fault.allCases
            if unmakes, (detail >> 20) % 8 == 0 { return world.fly(0, .unmade) }
            world.fly(
                Int(detail % UInt64(world.flights.count)),
                detail % 3 == 0 ? .none : faults.filter { $0 != .unmade }[Int((detail >> 8) % 8)])
        case 11, 12:
            guard !world.answers.isEmpty else { return }
            let answer = world.answers.remove(at: Int(detail % UInt64(world.answers.count)))
            // Its content is kept, also if no call can be made because of it.
            world.canCall = (detail >> 24) % 4 != 0
            world.decide(.result(answer.0, version: answer.version))
            world.canCall = true
            #expect(world.ledger?.version != answer.version, "an answer was lost")
            // A result may be recorded and then be delivered again: a crash in between.
            if detail % 5 == 0 { world.answers.append(answer) }
        case 13:
            // The worker is killed: no worker receives the results of its calls.
            for index in world.flights.indices { world.flights[index].isReceived = false }
            world.answers.removeAll()
        default: world.now += Int(detail % 40)
        }
    }

    private func check(_ world: SubmissionWorld, _ seed: UInt64) {
        #expect(world.liveRecords.count <= 1, "two records, seed \(seed)")
        #expect(!world.hasLeftRequest, "a request is left, seed \(seed)")
        if let entry = world.entry, entry.status == .released, entry.deleteRequested != true,
            world.ledger?.phase == .settled
        {
            let isConfirmed = world.liveRecords.first.map { record in
                world.ledger?.confirmed?.desired.isSameRecord(as: record.desired) == true
            }
            #expect(isConfirmed == true, "seed \(seed)")
        }
        for message in world.invalidMessages {
            #expect(
                [
                    "no", "no assignment", "Duration must be more than 0",
                    "The back end no longer has this entry; submit it again",
                ]
                .contains(message), "seed \(seed)")
        }
    }

    /// No more faults: calls end, results arrive, time passes, due keys are evaluated.
    private func settle(_ world: inout SubmissionWorld, _ random: inout SplitMix64) {
        world.isAssigned = true
        for _ in 0..<60 {
            while !world.flights.isEmpty || !world.answers.isEmpty {
                while !world.flights.isEmpty { world.fly(0, .none) }
                while !world.answers.isEmpty {
                    let answer = world.answers.removeFirst()
                    world.decide(.result(answer.0, version: answer.version))
                }
            }
            world.now += 60
            world.decide(.change)
        }
    }

    private func checkSettled(_ world: SubmissionWorld, _ seed: UInt64) {
        #expect(!world.isDead, "a key is dead-lettered, seed \(seed)")
        #expect(world.ledger.map { $0.phase == .settled } ?? true, "an attempt stays open, seed \(seed)")
        guard let entry = world.entry else {
            #expect(world.liveRecords.isEmpty, "a deleted entry is still in the back end, seed \(seed)")
            return
        }
        checkLastEdit(world, entry, seed)
        guard entry.submitRequested == true else {
            #expect(world.liveRecords.isEmpty, "a draft is in the back end, seed \(seed)")
            #expect([.draft, .invalid].contains(entry.status), "the entry is \(entry.status), seed \(seed)")
            return
        }
        #expect(world.lines.last?.status == entry.status, "the newest line, seed \(seed)")
        switch entry.status {
        case .released:
            #expect(world.liveRecords.count == 1, "seed \(seed)")
            #expect(world.liveRecords.first?.desired.durationSeconds == entry.durationSeconds, "seed \(seed)")
            #expect(world.liveRecords.first?.desired.text == entry.text, "seed \(seed)")
        case .invalid:
            #expect(!world.invalidMessages.isEmpty, "invalid without a reason, seed \(seed)")
        case .suggestion, .draft, .submitted, .rejected, .approved, .recorded:
            Issue.record("the entry ended as \(entry.status), seed \(seed)")
        }
    }

    /// Checks that the edit reached the back end, or was refused.
    private func checkLastEdit(_ world: SubmissionWorld, _ entry: TimeEntry, _ seed: UInt64) {
        guard let edit = world.lastEdit, edit.deleteRequested != true, edit.submitRequested == true else { return }
        let has = world.liveRecords.first.map {
            $0.desired.text == world.stored(edit.text) && $0.desired.durationSeconds == edit.durationSeconds
        }
        let wasRefused = world.refused.contains {
            $0.text == edit.text && $0.durationSeconds == edit.durationSeconds
        }
        let isWrong = (edit.durationSeconds ?? 0) <= 0
        #expect(has == true || wasRefused || isWrong, "the newest edit is lost, seed \(seed): \(edit)")
    }
}
