import FoundationEssentials

/// The server's result of a mutation.
public enum MutationOutcome: Equatable, Codable, Sendable {
    /// The mutation was accepted; every checkpoint at this position or higher contains it.
    case accepted(position: Int64)
    /// The mutation was rejected, with the last part of the problem's type, such as `deleted`, and its detail for
    /// display.
    case rejected(code: String, detail: String)
    /// The mutation was processed before, but its result has expired: the copy shows its effect.
    case expired

    /// `forgotten` is the stored name of ``expired``.
    private enum CodingKeys: String, CodingKey {
        case accepted, rejected
        case expired = "forgotten"
    }
}

/// A response to `POST /v1/mutations`.
public enum QueueResponse: Equatable, Sendable {
    /// Status 200: the results by the mutations' numbers, and the client's next new number.
    case results([Int64: MutationOutcome], expectedSequence: Int64)
    /// Status 409: a number is missing, and nothing was applied; the server expects this number.
    case gap(expectedSequence: Int64)

    /// Decodes a response.
    ///
    /// - Returns: `nil` for any other status: retry the request.
    /// - Throws: `DecodingError` if the body does not match the status.
    public static func read(status: Int, body: [UInt8]) throws -> QueueResponse? {
        switch status {
        case 200:
            let response = try JSONDecoder().decode(ResultsBody.self, from: Data(body))
            return .results(response.outcomes, expectedSequence: response.expectedSequence)
        case 409:
            let gap = try JSONDecoder().decode(GapBody.self, from: Data(body))
            return .gap(expectedSequence: gap.expectedSequence)
        default: return nil
        }
    }

    var isResult: Bool {
        switch self {
        case .results: true
        case .gap: false
        }
    }

    private struct GapBody: Decodable {
        let expectedSequence: Int64
    }

    private struct ResultsBody: Decodable {
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
        let expectedSequence: Int64

        var outcomes: [Int64: MutationOutcome] {
            results.reduce(into: [:]) { outcomes, result in
                if let accepted = result.accepted {
                    outcomes[result.sequence] = .accepted(position: accepted.position)
                } else if let rejected = result.rejected {
                    let code = (rejected.type ?? "").split { "/:#".contains($0) }.last.map(String.init) ?? ""
                    // A server of an earlier release sends `answer-forgotten`.
                    let isExpired = ["result-expired", "answer-forgotten"].contains(code)
                    outcomes[result.sequence] =
                        isExpired ? .expired : .rejected(code: code, detail: rejected.detail ?? "")
                }
            }
        }
    }
}
