import Essentials
import Foundation
import Postgres
import Synchronization
import TestSupport

/// A model of a person's notes: all mutations of the browser's stores and of another device.
struct NoteModel {
    enum Operation: String { case put, patch, delete }

    struct Write: Hashable {
        let operation: Operation
        let realm: String
        let id: String
        let fields: [String: String]
    }

    /// A result that the server stores of a mutation.
    struct Result {
        let number: MutationNumber
        /// 0 if it was rejected.
        let position: Int64
        let problem: String

        /// Reads all results of the person who has this client.
        static func all(of client: UUID, _ conninfo: String) throws -> [Result] {
            var connection = try Connection(conninfo)
            let rows = try connection.run(
                """
                SELECT m.client_id, m.sequence, coalesce(m.position, 0), coalesce(m.problem::text, '')
                FROM device.mutation m
                JOIN device.client c ON c.environment_id = m.environment_id AND c.person_id = m.person_id
                WHERE c.client_id = \(client) ORDER BY m.client_id, m.sequence
                """)
            return try rows.decode(UUID.self, Int64.self, Int64.self, String.self).map {
                Result(number: MutationNumber(client: $0, sequence: $1), position: $2, problem: $3)
            }
        }
    }

    /// What the page reported of a write.
    private enum Report {
        /// It is stored on the device.
        case stored
        /// The device's storage is full.
        case refused
        /// The tab was closed before it reported anything.
        case missing
    }

    private struct Entry {
        var report: Report
        let isAllowed: Bool
        /// Whether the storage was cleared before it was sent, and no tab was left.
        var isLosable = false
    }

    let otherClient = UUID()
    let log: MutationLog
    /// The notes that the tabs may change, in the order of their creation.
    private(set) var notes: [String] = []
    /// Rejected writes that the page must show.
    private(set) var rejected: Set<Write> = []
    /// Rejected writes that the page may have lost with the storage.
    private(set) var losableRejected: Set<Write> = []
    private var entries: [Write: Entry] = [:]
    private var ofOtherDevice: [Write] = []

    init(log: MutationLog) { self.log = log }

    // MARK: Writes

    mutating func add(_ write: Write, isAllowed: Bool = true) {
        entries[write] = Entry(report: .stored, isAllowed: isAllowed)
        guard isAllowed else {
            rejected.insert(write)
            return
        }
        notes.removeAll { $0 == write.id }
        if write.operation != .delete { notes.append(write.id) }
    }

    mutating func addRefused(_ write: Write) { entries[write] = Entry(report: .refused, isAllowed: true) }

    mutating func addUnreported(_ writes: [Write]) {
        for write in writes { entries[write] = Entry(report: .missing, isAllowed: true) }
    }

    /// - Returns: Its sequence.
    mutating func addOfOtherDevice(_ write: Write) -> Int64 {
        ofOtherDevice.append(write)
        return Int64(ofOtherDevice.count)
    }

    /// The storage was cleared, and no tab is left: all mutations without a result may be lost.
    mutating func clear(_ results: [Result]) {
        let finished = Set(results.compactMap { write(of: $0.number) })
        for write in entries.keys where !finished.contains(write) { entries[write]?.isLosable = true }
        // The server may not have these notes: it would reject a patch.
        let losable = Set(entries.filter { $0.value.isLosable }.map { $0.key.id })
        notes.removeAll { losable.contains($0) }
        losableRejected.formUnion(rejected)
        rejected = []
    }

    mutating func dismiss() { (rejected, losableRejected) = ([], []) }

    private func write(of number: MutationNumber) -> Write? {
        number.client == otherClient ? ofOtherDevice[Int(number.sequence) - 1] : log.write(of: number)
    }

    // MARK: Result

    /// Violations: a mutation is lost, applied twice, or has an unexpected result.
    func problems(of results: [Result]) -> [String] {
        var problems = log.problems
        var counts: [Write: Int] = [:]
        for result in results where result.number.client != otherClient {
            guard let write = log.write(of: result.number), let entry = entries[write] else {
                problems.append("\(result) is of an unknown mutation")
                continue
            }
            counts[write, default: 0] += 1
            if result.problem.isEmpty != entry.isAllowed { problems.append("\(write) has the result \(result)") }
        }
        for (write, entry) in entries {
            let count = counts[write] ?? 0
            let isMandatory = entry.report == .stored && !entry.isLosable
            if isMandatory && count == 0 { problems.append("\(write) is lost") }
            if entry.report == .refused && count > 0 { problems.append("\(write) was refused, and is applied") }
            if count > 1 { problems.append("\(write) is applied \(count) times") }
        }
        for (client, results) in Dictionary(grouping: results, by: \.number.client) {
            let sequences = results.map(\.number.sequence)
            if sequences != sequences.indices.map({ Int64($0) + 1 }) { problems.append("\(client) has \(sequences)") }
        }
        return problems
    }

    /// Differences between the server's notes and the model.
    func problems(of notes: [String: [String: String]], results: [Result]) -> [String] {
        var problems: [String] = []
        let accepted = results.filter(\.problem.isEmpty).compactMap { result in
            write(of: result.number).map { Accepted(result: result, write: $0) }
        }
        let byNote = Dictionary(grouping: accepted, by: \.write.id)
        for (id, writes) in byNote {
            let states = Self.states(after: writes)
            if !states.contains(notes[id]) {
                problems.append("\(id) is \(notes[id] ?? [:]), expected one of \(states) after \(writes)")
            }
        }
        return problems + notes.keys.filter { byNote[$0] == nil }.map { "\($0) is unknown" }
    }

    private struct Accepted {
        let result: Result
        let write: Write
    }

    /// The states that a note may have. Mutations of two clients that commit together have the same position: their
    /// order is unknown.
    private static func states(after writes: [Accepted]) -> Set<[String: String]?> {
        var states: Set<[String: String]?> = [nil]
        let commits = Dictionary(grouping: writes, by: \.result.position).sorted { $0.key < $1.key }
        for (_, commit) in commits {
            let byClient = Dictionary(grouping: commit, by: \.result.number.client).values
                .map { $0.sorted { $0.result.number.sequence < $1.result.number.sequence }.map(\.write) }
            let orders = [Array(byClient.joined()), Array(byClient.reversed().joined())]
            states = Set(states.flatMap { state in orders.map { $0.reduce(state, Self.apply) } })
        }
        return states
    }

    private static func apply(_ state: [String: String]?, _ write: Write) -> [String: String]? {
        switch write.operation {
        case .put: write.fields
        case .patch: (state ?? [:]).merging(write.fields) { $1 }
        case .delete: nil
        }
    }
}

/// The number under which the server stores a mutation.
struct MutationNumber: Hashable {
    let client: UUID
    let sequence: Int64
}

/// All mutations that the tabs of a person tried to send, recorded before the server can receive them.
final class MutationLog: Sendable {
    private struct Body: Decodable {
        struct Mutation: Decodable {
            let sequence: Int64
            let realm, op, id: String
            let fields: [String: String]?
        }

        let clientId: UUID
        let mutations: [Mutation]
    }

    private struct State {
        var writes: [MutationNumber: NoteModel.Write] = [:]
        var problems: [String] = []
        var random: SplitMix64
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(random: SplitMix64(seed: seed))) }

    /// Records a request and chooses its fate.
    func record(_ text: String) -> Browser.Interception.Fate {
        let body = Result { try JSONDecoder().decode(Body.self, from: Data(text.utf8)) }
        return state.withLock { state in
            do {
                let body = try body.get()
                for mutation in body.mutations {
                    let number = MutationNumber(client: body.clientId, sequence: mutation.sequence)
                    let write = NoteModel.Write(
                        operation: NoteModel.Operation(rawValue: mutation.op) ?? .put, realm: mutation.realm,
                        id: mutation.id, fields: mutation.fields ?? [:])
                    let former = state.writes.updateValue(write, forKey: number)
                    if let former, former != write { state.problems.append("\(number) is \(former) and \(write)") }
                }
            } catch {
                state.problems.append("\(error): \(text)")
            }
            switch Int.random(in: 0..<100, using: &state.random) {
            case 0..<4: return .loseRequest
            case 4..<8: return .loseResponse
            default: return .pass
            }
        }
    }

    func write(of number: MutationNumber) -> NoteModel.Write? { state.withLock { $0.writes[number] } }

    var problems: [String] { state.withLock(\.problems) }
}
