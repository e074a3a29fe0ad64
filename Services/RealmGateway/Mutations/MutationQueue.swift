/// The order of one client's mutations: each sequence number is applied once, and in order.
///
/// Numbers begin at 1 and have no gaps.
enum MutationQueue {
    /// What is done with one mutation.
    enum Step: Equatable, Sendable {
        /// It is the next one: decide about it and store the answer.
        case apply
        /// It was applied before: answer as then.
        case answerAgain
    }

    /// What is done with a request.
    enum Plan: Equatable, Sendable {
        /// One step for each mutation, in the request's order.
        case run([Step])
        /// A number is missing: nothing of the request is applied, and the client is told the number to go on from.
        case gap(expected: Int64)
    }

    /// Plans a request with these numbers from a client whose next new number is `expected`.
    ///
    /// A number below 1 cannot have been applied, so it is answered like a gap; so is a number missing between two of
    /// the request, even if all of them were applied before.
    static func plan(expected: Int64, sequences: [Int64]) -> Plan {
        var next = expected
        var steps: [Step] = []
        for (index, sequence) in sequences.enumerated() {
            guard sequence >= 1, sequence <= next, index == 0 || sequence <= sequences[index - 1] + 1 else {
                return .gap(expected: expected)
            }
            steps.append(sequence == next ? .apply : .answerAgain)
            if sequence == next { next += 1 }
        }
        return .run(steps)
    }
}
