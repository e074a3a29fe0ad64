import Foundation

/// An error of an emulator, of its files or of a control request.
struct EmulatorError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The switches of one emulator of a back end, in addition to those of all.
protocol EmulatorSwitches: Codable, Sendable {
    /// Whether the emulator has ``TextSwitches``.
    static var altersTexts: Bool { get }

    init()

    /// - Throws: `EmulatorError` for a value outside a switch's limits.
    func check() throws
}

extension EmulatorSwitches {
    static var altersTexts: Bool { true }
}

/// All switches of an emulator; as JSON they are one object.
@dynamicMemberLookup
struct Switches<Own: EmulatorSwitches>: Codable, Sendable {
    var faults = FaultSwitches()
    var texts = TextSwitches()
    private var own = Own()

    init() {}

    init(from decoder: any Decoder) throws {
        faults = try FaultSwitches(from: decoder)
        if Own.altersTexts { texts = try TextSwitches(from: decoder) }
        own = try Own(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        try faults.encode(to: encoder)
        if Own.altersTexts { try texts.encode(to: encoder) }
        try own.encode(to: encoder)
    }

    subscript<Value>(dynamicMember path: WritableKeyPath<Own, Value>) -> Value {
        get { own[keyPath: path] }
        set { own[keyPath: path] = newValue }
    }

    var json: JSON {
        get throws { .raw(Array(try JSONEncoder().encode(self))) }
    }

    /// Returns the switches with the values of a JSON object.
    ///
    /// - Throws: `EmulatorError` or `DecodingError` for an unknown switch or an invalid value.
    func changed(by json: Data) throws -> Switches {
        guard let values = try JSONSerialization.jsonObject(with: JSONEncoder().encode(self)) as? [String: Any],
            let changes = try? JSONSerialization.jsonObject(with: json) as? [String: Any]
        else { throw EmulatorError("the body must be a JSON object") }
        // A switch without a value is not in `values`.
        let names = values.keys + Mirror(reflecting: own).children.compactMap(\.label)
        if let unknown = changes.keys.first(where: { !names.contains($0) }) {
            throw EmulatorError("there is no switch \(unknown)")
        }
        let changed = try JSONSerialization.data(withJSONObject: values.merging(changes) { $1 })
        let new = try JSONDecoder().decode(Self.self, from: changed)
        try new.faults.check()
        try new.texts.check()
        try new.own.check()
        return new
    }
}

/// The faults of all emulators of back ends. A rate is the fraction of calls, from 0 to 1.
struct FaultSwitches: Codable, Equatable {
    /// Milliseconds before every response.
    var latencyMs = 0
    /// Calls that get 503 and are not processed.
    var rate503 = 0.0
    /// Calls that get 429 with `Retry-After: retryAfterSeconds` and are not processed.
    var rate429 = 0.0
    var retryAfterSeconds = 1
    /// Writes that are recorded, and whose connection is then closed without a response.
    var rateLostAfterWrite = 0.0
    /// Writes that are recorded, and get their response after `slowMs`.
    var rateSlowAfterWrite = 0.0
    /// Reads that get 503.
    var rate503OnReads = 0.0
    /// Writes that are recorded, and then get 500.
    var rate500AfterWrite = 0.0
    /// Writes that get 503 or no response at once, and become visible `lateCommitMs` later.
    var rateLateCommit = 0.0
    var lateCommitMs = 1000
    /// While it is set, no late commit becomes visible.
    var holdsLateCommits = false
    /// Number of next calls that get 503, and 429, independent of the rates.
    var next503 = 0
    var next429 = 0
    /// Number of next writes that are recorded without a response, and that become visible late.
    var nextLostAfterWrite = 0
    var nextLateCommit = 0
    /// Calls that take `slowMs` instead of `latencyMs`.
    var rateSlow = 0.0
    var slowMs = 2000
    /// Each row of listings that is this person's has one value that no client expects; see ``UnreadableRow``. SAP's
    /// people are named by their personnel assignment, e-conomic's by their employee number, Compass's as owners.
    var unreadableRowsOf = ""
    /// The same for one row of the lists that choices are made of: a project of e-conomic's, or a customer of SAP's,
    /// named by its number.
    var unreadableChoice = ""
    /// A change restarts the random numbers.
    var seed: UInt64 = 1

    func check() throws {
        let rates = [
            rate503, rate429, rateLostAfterWrite, rate500AfterWrite, rateLateCommit, rateSlow, rateSlowAfterWrite,
            rate503OnReads,
        ]
        guard rates.allSatisfy({ (0...1).contains($0) }) else { throw EmulatorError("a rate is from 0 to 1") }
        try Self.check(times: [latencyMs, retryAfterSeconds, lateCommitMs, slowMs])
        guard [next503, next429, nextLostAfterWrite, nextLateCommit].allSatisfy({ $0 >= 0 }) else {
            throw EmulatorError("a number of calls is 0 or more")
        }
    }

    static func check(times: [Int]) throws {
        guard times.allSatisfy({ (0...3_600_000).contains($0) }) else {
            throw EmulatorError("a time is from 0 to 3600000")
        }
    }
}
