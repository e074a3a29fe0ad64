import FoundationEssentials

/// The answer to `POST /v1/mutations`.
struct MutationAnswers: Decodable {
    struct Result: Decodable {
        struct Accepted: Decodable {
            let position: Int64
        }

        /// A problem of RFC 9457.
        struct Rejected: Decodable {
            let type: String?
            let detail: String?
        }

        let sequence: Int64
        let accepted: Accepted?
        let rejected: Rejected?
    }

    let results: [Result]

    /// The answers by the mutations' numbers.
    var outcomes: [Int64: DeviceOutbox.Outcome] {
        results.reduce(into: [:]) { outcomes, result in
            if let accepted = result.accepted {
                outcomes[result.sequence] = .accepted(position: accepted.position)
            } else if let rejected = result.rejected {
                let code = (rejected.type ?? "").split { "/:#".contains($0) }.last.map(String.init) ?? ""
                outcomes[result.sequence] = .rejected(code: code, detail: rejected.detail ?? "")
            }
        }
    }
}

/// What is read of the problem that a gap is answered with.
struct MutationGap: Decodable {
    let expectedSequence: Int64
}
