import Backends
import Essentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

@Suite(.ownThreads) struct SubmissionSimulationTests {
    /// At every step, whatever crashed, was repeated, reordered or delayed:
    ///
    /// 1. The back end has at most one live record of the entry.
    /// 2. At most one call that writes can be under way that nobody has heard of the end of.
    /// 3. An entry that says `released` has a live record with the values that were confirmed.
    /// 4. Only a refusal or the entry's own problem makes it `invalid`.
    /// 5. What an answer has told is kept, also when the call that follows from it cannot be made.
    ///
    /// And once the faults stop and time passes: what the device wants is what the back end has, or the entry is
    /// invalid with a message, and no key waits for a person. The newest edit has reached the back end, or was refused
    /// itself: no other edit's refusal undid it. The newest line tells the status.
    @Test(arguments: [1, 2, 713_318_241_000_326_089] + Seeds.random(1, for: "submission simulation"))
    func oneRecordWhateverHappens(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var stepCount = 0
        while stepCount < 30_000 {
            let worldSeed = random.next()
            var world = SubmissionWorld(seed: worldSeed)
            world.alters = worldSeed.isMultiple(of: 4)
            let steps = 20 + Int(random.next() % 100)
            for _ in 0..<steps {
                let action = random.next()
                // Odd seeds are those of runs without such calls.
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
            // Also with the flag left out, taken away, and put back, as phones do that were offline.
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
            // A worker looks; now and then the phone's patch comes between its load and its commit, or another
            // worker decides in between.
            switch detail % 4 {
            case 0: world.decide(.look) { $0.edit { $0.text = "between" } }
            case 1: world.decide(.look) { $0.decide(.look) }
            default: world.decide(.look)
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
            // What it tells is kept, also when nobody may be called because of it.
            world.canCall = (detail >> 24) % 4 != 0
            world.decide(.answer(answer.0, version: answer.version))
            world.canCall = true
            #expect(world.ledger?.version != answer.version, "an answer was lost")
            // An answer may be recorded and then come once more: a crash between the two.
            if detail % 5 == 0 { world.answers.append(answer) }
        case 13:
            // The worker is killed: nobody hears what comes of its calls.
            for index in world.flights.indices { world.flights[index].isHeard = false }
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
                world.ledger?.confirmed?.wanted.isSameRecord(as: record.wanted) == true
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

    /// No more faults: calls end, answers arrive, time passes, keys that are due are looked at.
    private func settle(_ world: inout SubmissionWorld, _ random: inout SplitMix64) {
        world.isAssigned = true
        for _ in 0..<60 {
            while !world.flights.isEmpty || !world.answers.isEmpty {
                while !world.flights.isEmpty { world.fly(0, .none) }
                while !world.answers.isEmpty {
                    let answer = world.answers.removeFirst()
                    world.decide(.answer(answer.0, version: answer.version))
                }
            }
            world.now += 60
            world.decide(.look)
        }
    }

    private func checkSettled(_ world: SubmissionWorld, _ seed: UInt64) {
        #expect(!world.isDead, "a key waits for a person, seed \(seed)")
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
            #expect(world.liveRecords.first?.wanted.durationSeconds == entry.durationSeconds, "seed \(seed)")
            #expect(world.liveRecords.first?.wanted.text == entry.text, "seed \(seed)")
        case .invalid:
            #expect(!world.invalidMessages.isEmpty, "invalid without a reason, seed \(seed)")
        case .suggestion, .draft, .submitted, .rejected, .approved, .recorded:
            Issue.record("the entry ended as \(entry.status), seed \(seed)")
        }
    }

    /// It reached the back end, or it is the one that was refused.
    private func checkLastEdit(_ world: SubmissionWorld, _ entry: TimeEntry, _ seed: UInt64) {
        guard let edit = world.lastEdit, edit.deleteRequested != true, edit.submitRequested == true else { return }
        let has = world.liveRecords.first.map {
            $0.wanted.text == world.kept(edit.text) && $0.wanted.durationSeconds == edit.durationSeconds
        }
        let wasRefused = world.refused.contains {
            $0.text == edit.text && $0.durationSeconds == edit.durationSeconds
        }
        let isWrong = (edit.durationSeconds ?? 0) <= 0
        #expect(has == true || wasRefused || isWrong, "the newest edit is lost, seed \(seed): \(edit)")
    }
}
