import Essentials
import FoundationEssentials

/// What the server decided about a mutation.
public enum MutationOutcome: Equatable, Codable, Sendable {
    /// The object is at this position afterwards: it is in every checkpoint at it or above.
    case accepted(position: Int64)
    /// The last part of the problem's type, such as `deleted`, and its detail for a person to read.
    case rejected(code: String, detail: String)
    /// It was decided before, but the server no longer keeps the answer: the copy tells what came of it.
    case forgotten
}

/// The answer to `POST /v1/mutations`.
public enum QueueAnswer: Equatable, Sendable {
    /// 200: what was decided, by the mutations' numbers, and the client's next new number.
    case results([Int64: MutationOutcome], expectedSequence: Int64)
    /// 409: a number is missing, and nothing was applied; the server goes on from this one.
    case gap(expectedSequence: Int64)

    /// Reads an answer.
    ///
    /// - Returns: `nil` for any other status: the request may be sent again.
    /// - Throws: `DecodingError` when the body is not what the status says.
    public static func read(status: Int, body: [UInt8]) throws -> QueueAnswer? {
        switch status {
        case 200:
            let answers = try JSONDecoder().decode(Answers.self, from: Data(body))
            return .results(answers.outcomes, expectedSequence: answers.expectedSequence)
        case 409:
            let gap = try JSONDecoder().decode(Gap.self, from: Data(body))
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

    private struct Gap: Decodable {
        let expectedSequence: Int64
    }

    private struct Answers: Decodable {
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
                    outcomes[result.sequence] =
                        code == "answer-forgotten" ? .forgotten : .rejected(code: code, detail: rejected.detail ?? "")
                }
            }
        }
    }
}
