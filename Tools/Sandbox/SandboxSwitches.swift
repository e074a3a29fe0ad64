/// What a stand-in's own interface was asked and cannot do.
struct SandboxProblem: Error {
    let message: String
}

/// How a stand-in of a back end behaves; `POST /sandbox/switches` changes those that are named.
protocol Switches: Encodable, Sendable {
    /// Those that all stand-ins have.
    var faults: FaultSwitches { get set }

    init()

    /// Sets the switch `name` to its new value.
    ///
    /// - Returns: False when there is no such switch.
    mutating func change(_ name: SwitchName, in values: KeyedDecodingContainer<SwitchName>) throws -> Bool

    /// - Throws: `SandboxProblem` for a value that a switch cannot have.
    func check() throws
}

/// Any name.
struct SwitchName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// A change of some switches: a decoder's container is all that is needed.
struct SwitchesPatch<Behaviour: Switches>: Decodable {
    private let values: KeyedDecodingContainer<SwitchName>

    init(from decoder: any Decoder) throws { values = try decoder.container(keyedBy: SwitchName.self) }

    /// - Throws: `SandboxProblem` or `DecodingError` when it cannot be made; nothing is changed then.
    func applied(to switches: Behaviour) throws -> Behaviour {
        var new = switches
        for name in values.allKeys where try !new.change(name, in: values) {
            throw SandboxProblem(message: "there is no switch \(name.stringValue)")
        }
        try new.check()
        return new
    }
}

/// How any stand-in of a back end misbehaves. Rates are shares from 0 to 1 of the calls they concern.
struct FaultSwitches: Codable, Equatable {
    /// Milliseconds before every answer.
    var latencyMs = 0
    /// Calls that are answered 503 and not processed.
    var rate503 = 0.0
    /// Calls that are answered 429 with `Retry-After: retryAfterSeconds` and not processed.
    var rate429 = 0.0
    var retryAfterSeconds = 1
    /// Writes that are recorded, and whose connection is then closed without an answer.
    var rateLostAfterWrite = 0.0
    /// Writes that are recorded, and answered only after `slowMs`.
    var rateSlowAfterWrite = 0.0
    /// Reads that are answered 503.
    var rate503OnReads = 0.0
    /// Writes that are recorded, and then answered 500.
    var rate500AfterWrite = 0.0
    /// Writes that get 503 or no answer at once, and become visible only `lateCommitMs` later.
    var rateLateCommit = 0.0
    var lateCommitMs = 1000
    /// While it is set none of them becomes visible.
    var holdsLateCommits = false
    /// So many of the next calls are answered 503, and 429, whatever chance says.
    var next503 = 0
    var next429 = 0
    /// And so many of the next writes are recorded without an answer, and become visible late.
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
    /// Begins the random numbers anew.
    var seed: UInt64 = 1

    mutating func change(_ name: SwitchName, in values: KeyedDecodingContainer<SwitchName>) throws -> Bool {
        switch name.stringValue {
        case "latencyMs": latencyMs = try values.decode(Int.self, forKey: name)
        case "rate503": rate503 = try values.decode(Double.self, forKey: name)
        case "rate429": rate429 = try values.decode(Double.self, forKey: name)
        case "retryAfterSeconds": retryAfterSeconds = try values.decode(Int.self, forKey: name)
        case "rateLostAfterWrite": rateLostAfterWrite = try values.decode(Double.self, forKey: name)
        case "rateSlowAfterWrite": rateSlowAfterWrite = try values.decode(Double.self, forKey: name)
        case "rate503OnReads": rate503OnReads = try values.decode(Double.self, forKey: name)
        case "rate500AfterWrite": rate500AfterWrite = try values.decode(Double.self, forKey: name)
        case "rateLateCommit": rateLateCommit = try values.decode(Double.self, forKey: name)
        case "lateCommitMs": lateCommitMs = try values.decode(Int.self, forKey: name)
        case "holdsLateCommits": holdsLateCommits = try values.decode(Bool.self, forKey: name)
        case "next503": next503 = try values.decode(Int.self, forKey: name)
        case "next429": next429 = try values.decode(Int.self, forKey: name)
        case "nextLostAfterWrite": nextLostAfterWrite = try values.decode(Int.self, forKey: name)
        case "nextLateCommit": nextLateCommit = try values.decode(Int.self, forKey: name)
        case "rateSlow": rateSlow = try values.decode(Double.self, forKey: name)
        case "slowMs": slowMs = try values.decode(Int.self, forKey: name)
        case "unreadableRowsOf": unreadableRowsOf = try values.decode(String.self, forKey: name)
        case "unreadableChoice": unreadableChoice = try values.decode(String.self, forKey: name)
        case "seed": seed = try values.decode(UInt64.self, forKey: name)
        default: return false
        }
        return true
    }

    func check() throws {
        try Self.check(rates: [rate503, rate429, rateLostAfterWrite, rate500AfterWrite, rateLateCommit, rateSlow])
        try Self.check(rates: [rateSlowAfterWrite, rate503OnReads])
        try Self.check(times: [latencyMs, retryAfterSeconds, lateCommitMs, slowMs])
        guard [next503, next429, nextLostAfterWrite, nextLateCommit].allSatisfy({ $0 >= 0 }) else {
            throw SandboxProblem(message: "a number of calls is 0 or more")
        }
    }

    static func check(rates: [Double]) throws {
        guard rates.allSatisfy({ (0...1).contains($0) }) else {
            throw SandboxProblem(message: "a rate is from 0 to 1")
        }
    }

    static func check(times: [Int]) throws {
        guard times.allSatisfy({ (0...3_600_000).contains($0) }) else {
            throw SandboxProblem(message: "a time is from 0 to 3600000")
        }
    }
}
