/// How the SAP sandbox misbehaves; `POST /sandbox/switches` changes those that are named.
///
/// Rates are shares from 0 to 1 of the calls they concern.
struct SAPSwitches: Codable, Equatable, Sendable {
    /// Milliseconds before every answer.
    var latencyMs = 0
    /// Calls that are answered 503 and not processed.
    var rate503 = 0.0
    /// Calls that are answered 429 with `Retry-After: retryAfterSeconds` and not processed.
    var rate429 = 0.0
    var retryAfterSeconds = 1
    /// Writes that are recorded, and whose connection is then closed without an answer.
    var rateLostAfterWrite = 0.0
    /// Writes that get 503 or no answer at once, and become visible only `lateCommitMs` later.
    var rateLateCommit = 0.0
    var lateCommitMs = 1000
    /// Calls that take `slowMs` instead of `latencyMs`.
    var rateSlow = 0.0
    var slowMs = 2000
    /// Creations and changes that are refused as if a check of the customer's own had failed.
    var validationRate = 0.0
    /// Released records wait for an approver (20); otherwise they are approved by their release (30).
    var approvalNeeded = true
    /// No record on or before this day, `yyyy-MM-dd`, may be created, changed or deleted.
    var lockedThrough: String?
    /// Begins the random numbers anew.
    var seed: UInt64 = 1

    init() {}

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// A switch that is not there, or a value it cannot have.
    struct Problem: Error {
        let message: String
    }

    /// These switches with those that `patch` names changed.
    func patched(by patch: some Decoder) throws -> SAPSwitches {
        let values = try patch.container(keyedBy: Key.self)
        var new = self
        for key in values.allKeys {
            switch key.stringValue {
            case "latencyMs": new.latencyMs = try values.decode(Int.self, forKey: key)
            case "rate503": new.rate503 = try values.decode(Double.self, forKey: key)
            case "rate429": new.rate429 = try values.decode(Double.self, forKey: key)
            case "retryAfterSeconds": new.retryAfterSeconds = try values.decode(Int.self, forKey: key)
            case "rateLostAfterWrite": new.rateLostAfterWrite = try values.decode(Double.self, forKey: key)
            case "rateLateCommit": new.rateLateCommit = try values.decode(Double.self, forKey: key)
            case "lateCommitMs": new.lateCommitMs = try values.decode(Int.self, forKey: key)
            case "rateSlow": new.rateSlow = try values.decode(Double.self, forKey: key)
            case "slowMs": new.slowMs = try values.decode(Int.self, forKey: key)
            case "validationRate": new.validationRate = try values.decode(Double.self, forKey: key)
            case "approvalNeeded": new.approvalNeeded = try values.decode(Bool.self, forKey: key)
            case "lockedThrough": new.lockedThrough = try values.decodeIfPresent(String.self, forKey: key)
            case "seed": new.seed = try values.decode(UInt64.self, forKey: key)
            default: throw Problem(message: "there is no switch \(key.stringValue)")
            }
        }
        let rates = [
            new.rate503, new.rate429, new.rateLostAfterWrite, new.rateLateCommit, new.rateSlow, new.validationRate,
        ]
        guard rates.allSatisfy({ (0...1).contains($0) }) else { throw Problem(message: "a rate is from 0 to 1") }
        let times = [new.latencyMs, new.retryAfterSeconds, new.lateCommitMs, new.slowMs]
        guard times.allSatisfy({ (0...3_600_000).contains($0) }) else {
            throw Problem(message: "a time is from 0 to 3600000")
        }
        return new
    }
}

/// Decodes a patch of switches: a decoder's container is all that is needed.
struct SAPSwitchesPatch: Decodable {
    private let apply: (SAPSwitches) throws -> SAPSwitches

    init(from decoder: any Decoder) throws {
        apply = { try $0.patched(by: decoder) }
    }

    func applied(to switches: SAPSwitches) throws -> SAPSwitches { try apply(switches) }
}
