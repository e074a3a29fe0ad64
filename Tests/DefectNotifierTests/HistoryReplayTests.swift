import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import DefectNotifier

/// The histories of real trackers on a simulated clock: the notices match those of a reference reader.
///
/// Needs the folder with the data in the environment variable `FIELDPOST_TEST_DATA`. Without it the tests are skipped
/// with a message.
@Suite(
    .ownThreads,
    .enabled(
        if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
        "FIELDPOST_TEST_DATA does not name the folder with defects-mozilla-history.jsonl.gz"))
struct HistoryReplayTests {
    /// A bug of Bugzilla, limited to the fields of the test.
    private struct Bug: Decodable {
        struct User: Decodable { let id: String }
        struct Change: Decodable {
            let field: String
            let from: String?
            let to: String?
        }
        struct Step: Decodable {
            let when: Timestamp
            let who: User
            let changes: [Change]

            func change(_ fields: Set<String>) -> Change? { changes.first { fields.contains($0.field) } }
        }
        let id: Int
        let headline: String?
        let submitter: User?
        let owner: User?
        let history: [Step]?
    }

    private static let ownerFields: Set = ["assigned_to"]
    private static let stateFields: Set = ["status", "bug_status"]

    private static func bugs(_ name: String) throws -> [Bug] {
        let folder = try #require(ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"])
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", "--", "\(folder)/\(name)"]
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let decoder = JSONDecoder()
        return try data.split(separator: UInt8(ascii: "\n")).map { try decoder.decode(Bug.self, from: $0) }
            .filter { $0.history?.isEmpty == false }
    }

    /// Adds the bugs in the state before their histories.
    private static func add(_ bugs: [Bug], to world: inout NotifierWorld) {
        for bug in bugs {
            let owner = bug.history?.lazy.compactMap { $0.change(ownerFields)?.from }.first ?? bug.owner?.id
            world.tracker.add(
                TrackedDefect(
                    record: "\(bug.id)", headline: bug.headline ?? "", owner: owner.flatMap { $0.isEmpty ? nil : $0 },
                    submitter: bug.submitter?.id))
        }
    }

    /// Steps are sometimes followed by actions of others on the same bug in the same second: by another user, and by
    /// the same one again.
    ///
    /// Polls run every five minutes in which something happened. The clock skips all other time.
    @Test(
        arguments: ["defects-mozilla-history.jsonl.gz", "defects-eclipse-history.jsonl.gz"],
        Seeds.random(1, for: "histories"))
    func noticesMatchReferenceReader(name: String, seed: UInt64) throws {
        let bugs = try Self.bugs(name)
        let steps = bugs.flatMap { bug in (bug.history ?? []).map { (bug: bug, step: $0) } }
            .sorted { $0.step.when < $1.step.when }
        let logins = Set(
            bugs.flatMap { [$0.owner?.id, $0.submitter?.id] }.compactMap(\.self)
                + steps.flatMap { [$0.step.who.id, $0.step.change(Self.ownerFields)?.to].compactMap(\.self) }
        ).filter { !$0.isEmpty }
        let people = Dictionary(uniqueKeysWithValues: logins.map { ($0, "\($0)@example.com") })
        let first = try #require(steps.first?.step.when)
        var random = SplitMix64(seed: seed)
        var world = try NotifierWorld(people: people, now: Self.seconds(first) - 86_400)
        Self.add(bugs, to: &world)
        try world.complete()
        var rest = steps[...]
        let others = logins.sorted()
        var sameSecondCount = 0
        while let next = rest.first {
            world.now = Self.seconds(next.step.when) / 300 * 300 + 300
            // Summer time half of the year, and a clock with an error of some minutes.
            let isSummer = (world.now / 86_400 % 365) > 90 && (world.now / 86_400 % 365) < 300
            world.tracker.offset = (isSummer ? -4 : -5) * 3_600 + Int.random(in: -600...600, using: &random)
            while let (bug, step) = rest.first, Self.seconds(step.when) < world.now {
                rest = rest.dropFirst()
                let owner = step.change(Self.ownerFields)?.to
                world.tracker.act(
                    owner == nil ? "Modify" : "Assign", on: "\(bug.id)", by: step.who.id, at: Self.seconds(step.when),
                    owner: owner, state: step.change(Self.stateFields)?.to)
                for other in [step.who.id, others.randomElement(using: &random) ?? "", "unlisted"]
                where Int.random(in: 0..<4, using: &random) == 0 {
                    world.tracker.act(
                        owner == nil ? "Modify" : "Assign", on: "\(bug.id)", by: other, at: Self.seconds(step.when))
                    sameSecondCount += 1
                }
            }
            try world.complete(crashing: &random, oneIn: 20)
        }
        #expect(world.expected.count > 500 && sameSecondCount > 500, "\(steps.count) steps")
        #expect(world.expected.count == world.reference.notices.count, "one notice for each action")
        try world.expectNotices()
        try world.complete(.comparison)
        #expect(try world.mirrors() == world.expectedMirrors)
        print("\(name): \(bugs.count) bugs, \(steps.count) steps, \(world.expected.count) notices")
    }

    private static func seconds(_ time: Timestamp) -> Int { Int(time.millisecondsSinceEpoch / 1_000) }
}
