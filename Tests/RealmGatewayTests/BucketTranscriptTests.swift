import PowerSyncModel
import TestSupport
import Testing

/// The model of a PowerSync client against transcripts that the real client core accepted.
@Suite(.ownThreads) struct BucketTranscriptTests {
    private struct Player {
        var transcript: BucketTranscript
        var model = BucketModel()
        var isClosed = false

        mutating func play(_ step: [String: Any], _ label: String) throws {
            if step["start"] != nil {
                let sent = model.begin()
                isClosed = false
                if let request = step["request"] as? [String: Any],
                    let expected = request["buckets"] as? [[String: Any]]
                {
                    let expected = expected.map { "\($0["name"] ?? "") \($0["after"] ?? "")" }.sorted()
                    #expect(sent.map { "\($0["name"] ?? "") \($0["after"] ?? "")" }.sorted() == expected, "\(label)")
                }
            }
            for _ in 0..<transcript.recordWrites(step) { model.write() }
            if let count = step["upload"] as? Int { model.waitingCount -= count }
            if let number = (step["writeCheckpoint"] as? String).flatMap({ Int64($0) }) {
                model.awaited = number
                model.displayIfPossible()
            }
            if let range = step["lines"] as? [Int] {
                for index in (range[0] - 1)..<range[1] where !isClosed {
                    do { try model.apply(transcript.lines[index]) } catch { isClosed = true }
                }
            }
            if let line = step["error"] as? Int {
                #expect(throws: BucketModel.StreamError.self, "\(label)") {
                    try model.apply(transcript.lines[line - 1])
                }
            }
            if let expected = step["expect"] as? [String: Any] { check(expected, label) }
        }

        private func check(_ expected: [String: Any], _ label: String) {
            if let count = expected["completed"] as? Int { #expect(model.completedCount == count, "\(label)") }
            for (name, numbers) in expected["buckets"] as? [String: [Int64]] ?? [:] {
                let bucket = model.buckets[name]
                #expect([bucket?.applied, bucket?.last, bucket.map { Int64($0.sum) }] == numbers, "\(label): \(name)")
            }
            #expect(transcript.differences(model, expected) == [], "\(label)")
        }
    }

    @Test(arguments: BucketTranscript.names) func modelHasTheExpectedTables(name: String) throws {
        var player = Player(transcript: try BucketTranscript(name))
        for (index, step) in player.transcript.steps.enumerated() {
            try player.play(step, "\(name), step \(index + 1)")
        }
    }

    @Test func transcriptsExist() { #expect(BucketTranscript.names.count == 20) }
}
