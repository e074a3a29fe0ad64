/// The result of one check of `fieldpost doctor`, with the action.
struct DoctorFinding: Encodable, Equatable, Sendable {
    enum State: String, Encodable, Sendable {
        case good = "OK"
        /// It works, but not permanently or not optimally.
        case warning = "WARN"
        /// It does not work, or data will be lost.
        case failure = "FAIL"
    }

    /// The name of the check, for example `PostgreSQL: schema`.
    let check: String
    let state: State
    let seen: String
    /// The action; `nil` for `OK`.
    let remedy: String?

    private enum CodingKeys: String, CodingKey {
        case check, state
        case seen = "finding"
        case remedy = "action"
    }

    static func good(_ check: String, _ seen: String) -> DoctorFinding {
        DoctorFinding(check: check, state: .good, seen: seen, remedy: nil)
    }

    static func warning(_ check: String, _ seen: String, do remedy: String) -> DoctorFinding {
        DoctorFinding(check: check, state: .warning, seen: seen, remedy: remedy)
    }

    static func failure(_ check: String, _ seen: String, do remedy: String) -> DoctorFinding {
        DoctorFinding(check: check, state: .failure, seen: seen, remedy: remedy)
    }
}

/// A check of one part of an installation. It reads only.
protocol DoctorCheck: Sendable {
    func findings() async -> [DoctorFinding]
}
