import Essentials
import Foundation
import Postgres
import Synchronization
import TenantMigration
import TestSupport
import Testing

/// Streams that were modified in transit: each is rejected with the part, and cannot be activated.
@Suite(.ownThreads) struct MoveStreamTests {
    private let fixture: EnvironmentMoveFixture

    init() throws { fixture = try EnvironmentMoveFixture(objectCount: 300) }

    @Test(arguments: Seeds.random(1, for: "modified streams"))
    func modifiedStreamsAreRejectedWithTheirPart(seed: UInt64) throws {
        let frames = try fixture.frames()
        let (again, other) = (try fixture.frames(), try EnvironmentMoveFixture(objectCount: 300).frames())
        try #require(frames.count == again.count && frames.count == other.count && frames.count > 20)
        var generator = SplitMix64(seed: seed)
        var changes = StreamChange.ofFrames(frames, using: &generator)
        changes += StreamChange.splices(frames, again, of: "another export", isOfSameMove: true)
        changes += StreamChange.splices(frames, other, of: "another environment", isOfSameMove: false)
        changes += StreamChange.mixtures(of: [frames, again, other], using: &generator)
        try expectRejection(of: changes, "seed \(seed)")
        let begin = try fixture.run(at: fixture.destination, "activate", "acme", "x", "--key-from", "KEY")
        #expect(begin.status == 1 && begin.errors.contains("no complete, inactive copy"), "\(begin)")
        try fixture.finish(receipt(of: frames))
    }

    private func expectRejection(of changes: [StreamChange], _ seed: String) throws {
        var connection = try Connection(fixture.destination, limits: MoveStore.limits)
        for change in changes {
            let error = #expect(throws: (any Error).self, "\(change.name)") {
                try fixture.take(change.stream, on: &connection)
            }
            let text = String(describing: error)
            #expect(change.positions.contains { text.contains($0) }, "\(seed): \(change.name): \(text)")
            let state = try MoveStore.find("acme", on: &connection)?.state
            #expect(state == nil || state == .arriving, "\(change.name)")
        }
    }

    /// Returns the receipt of an unmodified stream.
    private func receipt(of frames: [[UInt8]]) throws -> String {
        var connection = try Connection(fixture.destination, limits: MoveStore.limits)
        return try fixture.take(frames, on: &connection)
    }

    /// Parts before the modification are authentic: the stream resumes after them.
    @Test func rejectedStreamResumesAfterLastValidPart() throws {
        var lines = try fixture.stream()
        let second = try #require(lines.indices.filter { lines[$0].hasPrefix(#"{"part""#) }.dropFirst().first)
        let row = try #require(lines[second...].firstIndex { $0.contains(#""deleted":"#) })
        lines[row].replace("deleted", with: "deletes")
        let refused = try fixture.bring(lines)
        #expect(
            refused.status == 1 && refused.errors.contains("rejected at part 3 (lines \(second + 1) to "), "\(refused)")
        let rest = try fixture.stream(resume: EnvironmentMoveFixture.resume(refused))
        try #require(rest.count < lines.count - 200)
        try fixture.finish(fixture.line(fixture.bring(rest)))
    }

    @Test func streamOfOtherFormatOrKeyIsRejected() throws {
        var lines = try fixture.stream()
        lines[0].replace(#""format":5"#, with: #""format":4"#)
        let old = String(try #require(lines[0].split(separator: " ").first))
        let formats = try fixture.bring([old[...]] + lines.dropFirst())
        #expect(formats.status == 1 && formats.errors.contains("must be of the same release"), "\(formats)")
        let keys = try fixture.bring(fixture.stream(), key: Data(repeating: 9, count: 32).base64EncodedString())
        #expect(keys.status == 1 && keys.errors.contains("the transfer key is not the one"), "\(keys)")
        #expect(try fixture.count("SELECT count(*) FROM realm.move", at: fixture.destination) == 0)
    }

    /// The second import waits, because the first session's client may have been killed; it detects that the first one
    /// made progress.
    @Test func concurrentImportIsRejected() throws {
        let frames = try fixture.frames()
        let failure = Mutex<(any Error)?>(nil)
        let isOver = DispatchSemaphore(value: 0)
        do {
            var first = try Connection(fixture.destination, limits: MoveStore.limits)
            _ = try fixture.take(frames, on: &first) { number in
                guard number == 5 else { return }
                Thread {
                    do {
                        var second = try Connection(fixture.destination, limits: MoveStore.limits)
                        _ = try fixture.take(frames, on: &second)
                    } catch {
                        failure.withLock { $0 = error }
                    }
                    isOver.signal()
                }.start()
                try waitUntil("the second import waits") {
                    try fixture.count("SELECT count(*) FROM (\(Statement.lockWaits)) w", at: fixture.destination) == 1
                }
            }
        }
        isOver.wait()
        let error = failure.withLock { $0 }
        #expect((error as? MoveFailure)?.description.contains("another import") == true, "\(String(describing: error))")
        try fixture.finish(fixture.line(fixture.bring(fixture.stream())))
    }
}

extension EnvironmentMoveFixture {
    /// Returns the frames of an export: a line, and the rows that it announces.
    func frames() throws -> [[UInt8]] {
        var frames: [[UInt8]] = []
        try export { frames.append($0) }
        return frames
    }

    /// Imports a stream on a connection of the caller.
    ///
    /// - Parameter before: Called before each line, with its number from 0 on.
    func take(
        _ frames: [[UInt8]], on connection: inout Connection, before: @escaping (Int) throws -> Void = { _ in }
    ) throws -> String {
        var lines = StreamChange.lines(Array(frames.joined()))[...]
        var number = 0
        var moving = EnvironmentImport(transfer: try transferBox()) {
            try before(number)
            number += 1
            return lines.popFirst()
        }
        return try moving.run(on: &connection)
    }
}

/// A modification of a stream, and the positions at which it may be detected.
struct StreamChange {
    let name: String
    let stream: [[UInt8]]
    /// The message contains one of them.
    private(set) var positions: [String]

    private init(_ name: String, _ stream: [[UInt8]], at positions: String...) {
        (self.name, self.stream, self.positions) = (name, stream, positions)
    }

    /// Lines with their ends.
    static func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { Array($0) + [10] }
        let rest = Array(lines.removeLast().dropLast())
        return rest.isEmpty ? lines : lines + [rest]
    }

    private static func part(_ number: Int) -> String { "at part \(number) (" }
    private static func cut(_ number: Int) -> String { "cut after part \(number) (" }
    private static let after = "after the last part ("

    /// Frames that are removed, repeated, exchanged, cut or modified.
    static func ofFrames(_ frames: [[UInt8]], using generator: inout SplitMix64) -> [StreamChange] {
        var changes: [StreamChange] = []
        let last = frames.count - 1
        for (index, frame) in frames.enumerated() {
            let number = index + 1
            func with(_ frame: [UInt8]?) -> [[UInt8]] {
                frames[..<index] + [frame].compactMap(\.self) + frames[number...]
            }
            changes.append(.init("\(number) removed", with(nil), at: part(number), cut(index)))
            changes.append(
                .init(
                    "\(number) twice", Array(frames[...index]) + frames[index...],
                    at: index == last ? after : part(number + 1)
                ))
            changes.append(.init("\(number) after the end", frames + [frame], at: after))
            if index < last {
                var swapped = frames
                swapped.swapAt(index, number)
                changes.append(.init("\(number) and the next exchanged", swapped, at: part(number)))
                changes.append(.init("cut after \(number)", Array(frames[...index]), at: cut(number)))
            }
            changes.append(
                .init(
                    "cut in \(number)",
                    frames[..<index] + [Array(frame.prefix(Int.random(in: 1..<frame.count, using: &generator)))],
                    at: cut(index)))
            changes.append(.init("\(number) lost its last byte", frames[..<index] + [frame.dropLast()], at: cut(index)))
            var rows = lines(frame)
            let head = rows.removeFirst()
            for _ in 0..<3 {
                let changed = self.changed(head, using: &generator)
                changes.append(
                    .init(
                        "line of \(number) changed: \(String(decoding: changed, as: UTF8.self))",
                        with(changed + rows.joined()),
                        // In the first line, another key or format may be detected; a count may exceed the existing
                        // rows.
                        at: part(number), cut(index), index == 0 ? "must be of the same release" : part(number),
                        index == 0 ? "the transfer key is not the one" : part(number)))
            }
            changes += ofRows(rows, of: head, number, using: &generator, with)
        }
        changes.append(.init("rubbish after the end", frames + [Array("rubbish\n".utf8)], at: after))
        changes.append(.init("a line feed after the end", frames + [[10]], at: after))
        return changes
    }

    private static func ofRows(
        _ rows: [[UInt8]], of head: [UInt8], _ number: Int, using generator: inout SplitMix64,
        _ with: ([UInt8]?) -> [[UInt8]]
    ) -> [StreamChange] {
        guard !rows.isEmpty else { return [] }
        let row = Int.random(in: 0..<rows.count, using: &generator)
        var (changed, removed, added, swapped) = (rows, rows, rows, rows)
        changed[row] = self.changed(rows[row], using: &generator)
        removed.remove(at: row)
        added.insert(rows[row], at: row)
        swapped.swapAt(row, (row + 1) % rows.count)
        var changes = [
            StreamChange("a row of \(number) changed", with(head + changed.joined()), at: part(number)),
            StreamChange(
                "a row of \(number) removed", with(head + removed.joined()), at: part(number), cut(number - 1)),
            StreamChange("a row of \(number) twice", with(head + added.joined()), at: part(number), part(number + 1)),
        ]
        if rows.count > 1 {
            changes.append(.init("rows of \(number) exchanged", with(head + swapped.joined()), at: part(number)))
        }
        return changes
    }

    /// Returns a line with one flipped bit.
    private static func changed(_ line: [UInt8], using generator: inout SplitMix64) -> [UInt8] {
        var line = line
        line[Int.random(in: 0..<(line.count - 1), using: &generator)] ^= 1
        return line
    }

    /// Frames of another stream, in their own position and between two.
    static func splices(
        _ frames: [[UInt8]], _ others: [[UInt8]], of what: String, isOfSameMove: Bool
    ) -> [StreamChange] {
        var changes: [StreamChange] = []
        for (index, other) in others.enumerated() {
            let number = index + 1
            // A different header starts another stream.
            let position = index > 0 ? part(number) : isOfSameMove ? part(2) : "another move of acme"
            changes.append(
                .init("\(number) of \(what)", frames[..<index] + [other] + frames[number...], at: position, part(2)))
            guard index > 0 else { continue }
            changes.append(
                .init("from \(number) on of \(what)", Array(frames[..<index]) + others[index...], at: position))
            changes.append(
                .init(
                    "a beginning of \(what) before \(number)", frames[..<index] + [others[0]] + frames[index...],
                    at: position))
            changes.append(
                .init(
                    "the end of \(what) before \(number)",
                    frames[..<index] + [others[others.count - 1]] + frames[index...], at: position))
        }
        changes.append(.init("\(what) after the end", frames + others, at: after))
        return changes
    }

    /// Random combinations of removed, repeated, moved and foreign frames.
    static func mixtures(of streams: [[[UInt8]]], using generator: inout SplitMix64) -> [StreamChange] {
        (0..<100).compactMap { number in
            var stream = streams[0]
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let range = part(of: stream, using: &generator)
                let taken = Array(stream[range])
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: stream.removeSubrange(range)
                case 1: stream.insert(contentsOf: taken, at: range.upperBound)
                case 2: stream.replaceSubrange(range, with: taken.shuffled(using: &generator))
                case 3:
                    stream.removeSubrange(range)
                    stream.insert(contentsOf: taken, at: Int.random(in: 0...stream.count, using: &generator))
                default:
                    let other = streams[Int.random(in: 1..<streams.count, using: &generator)]
                    stream.replaceSubrange(range, with: other[part(of: other, using: &generator)])
                }
            }
            guard !streams.contains(stream) else { return nil }
            var change = StreamChange("mixture \(number)", stream)
            change.positions = ["at part ", "cut after part ", after, "another move of acme"]
            return change
        }
    }

    private static func part(of stream: [[UInt8]], using generator: inout SplitMix64) -> Range<Int> {
        let begin = Int.random(in: 0...stream.count, using: &generator)
        return begin..<min(stream.count, begin + Int.random(in: 1...6, using: &generator))
    }
}
