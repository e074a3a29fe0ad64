import Foundation
import Postgres

/// A model of a person's notes: all mutations of the browser's store and of another device.
struct NoteModel {
    enum Operation: String { case put, patch, delete }

    struct Write {
        let operation: Operation
        let id: String
        let fields: [String: String]
    }

    /// A result that the server stores of a mutation.
    struct Result {
        let client: UUID
        let sequence: Int64
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
                Result(client: $0, sequence: $1, position: $2, problem: $3)
            }
        }
    }

    struct Violation: Error, CustomStringConvertible { let description: String }

    private struct NumberedWrite {
        let client: UUID
        let sequence: Int64
        let write: Write
    }

    let otherClient = UUID()
    /// The notes that the tabs may change, in the order of their creation.
    private(set) var notes: [String] = []
    private var all: [NumberedWrite] = []
    /// The mutations of the current store by their sequences.
    private var stored: [Int64: Write] = [:]
    /// Notes whose only write may be lost.
    private var uncertain: [String] = []
    private var uncertainOfStore = 0
    /// The number of the server's mutations that no tab reported as stored.
    private var unreportedCount = 0
    /// The last compared sequence of each client.
    private var compared: [UUID: Int64] = [:]

    // MARK: Writes

    mutating func add(_ write: Write, sequence text: String) throws {
        guard let sequence = Int64(text) else { throw Violation(description: "no sequence: \(text)") }
        guard stored.updateValue(write, forKey: sequence) == nil else {
            throw Violation(description: "two mutations have the sequence \(sequence)")
        }
        notes.removeAll { $0 == write.id }
        if write.operation != .delete { notes.append(write.id) }
    }

    /// - Returns: Its sequence.
    mutating func addOfOtherDevice(_ write: Write) -> Int64 {
        let sequence = Int64(all.count { $0.client == otherClient }) + 1
        all.append(NumberedWrite(client: otherClient, sequence: sequence, write: write))
        return sequence
    }

    mutating func addUncertain(_ ids: [String]) {
        uncertain += ids
        uncertainOfStore += ids.count
    }

    /// Ends the current store, whose queue is empty: the server has all of its mutations under one client, once. A
    /// store that an open tab recreates continues with the numbers of its client.
    mutating func endStore(_ results: [Result]) throws {
        let new = results.filter { $0.client != otherClient && $0.sequence > compared[$0.client] ?? 0 }
        let clients = Set(new.map(\.client))
        guard clients.count <= 1 else { throw Violation(description: "one store has the clients \(clients)") }
        let former = clients.first.flatMap { compared[$0] } ?? 0
        let last = former + Int64(new.count)
        guard new.map(\.sequence) == new.indices.map({ former + Int64($0) + 1 }) else {
            throw Violation(description: "a gap in \(new.map(\.sequence))")
        }
        if let rejected = new.first(where: { !$0.problem.isEmpty }) {
            throw Violation(description: "\(rejected.sequence) is rejected: \(rejected.problem)")
        }
        for (sequence, write) in stored where sequence <= former || sequence > last {
            throw Violation(description: "\(sequence) of \(last) is lost: \(write)")
        }
        let unreported = new.count - stored.count
        guard unreported <= uncertainOfStore else {
            throw Violation(description: "\(new.count) mutations, \(stored.count) written, \(uncertainOfStore) maybe")
        }
        if let client = clients.first {
            compared[client] = last
            all += stored.map { NumberedWrite(client: client, sequence: $0, write: $1) }
        }
        unreportedCount += unreported
        stored = [:]
        uncertainOfStore = 0
    }

    // MARK: Result

    /// Differences between the server's notes and the model.
    func problems(of notes: [String: [String: String]], results: [Result]) -> [String] {
        struct Key: Hashable { let client: UUID, sequence: Int64 }
        let positions = Dictionary(
            results.filter { $0.problem.isEmpty }.map { (Key(client: $0.client, sequence: $0.sequence), $0.position) },
            uniquingKeysWith: { first, _ in first })
        var problems: [String] = []
        let byNote = Dictionary(grouping: all, by: \.write.id)
        for (id, writes) in byNote {
            let accepted = writes.compactMap { write in
                positions[Key(client: write.client, sequence: write.sequence)].map { (position: $0, write: write) }
            }
            let states = Self.states(after: accepted)
            if !states.contains(notes[id]) {
                problems.append("\(id) is \(notes[id] ?? [:]), expected one of \(states) after \(accepted)")
            }
        }
        let found = uncertain.count { notes[$0] != nil }
        if found != unreportedCount {
            problems.append("\(unreportedCount) mutations of notes that may be lost, but \(found) of these notes")
        }
        let known = Set(byNote.keys).union(uncertain)
        return problems + notes.keys.filter { !known.contains($0) }.map { "\($0) is unknown" }
    }

    /// The states that a note may have. Mutations of two clients that commit together have the same position: their
    /// order is unknown.
    private static func states(after writes: [(position: Int64, write: NumberedWrite)]) -> Set<[String: String]?> {
        var states: Set<[String: String]?> = [nil]
        let commits = Dictionary(grouping: writes, by: \.position).sorted { $0.key < $1.key }
        for (_, commit) in commits {
            let byClient = Dictionary(grouping: commit.map(\.write), by: \.client).values
                .map { $0.sorted { $0.sequence < $1.sequence }.map(\.write) }
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
