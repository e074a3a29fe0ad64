/// What `fieldpost doctor` saw of one thing, and what is to be done about it.
struct DoctorFinding: Encodable, Equatable, Sendable {
    enum State: String, Encodable, Sendable {
        case good = "OK"
        /// It works, and will not always, or not as well as it could.
        case warning = "WARN"
        /// Something does not work, or will be lost.
        case failure = "FAIL"
    }

    /// What was looked at, for example `PostgreSQL: schema`.
    let check: String
    let state: State
    let seen: String
    /// `nil` when all is well.
    let remedy: String?

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

/// Looks at one part of an installation. It reads only.
protocol DoctorCheck: Sendable {
    func findings() async -> [DoctorFinding]
}
