public import BackendProtocol

/// What every adapter must keep, whatever the back end: named checks against a ``BackendHarness``.
///
/// Each check stands alone, needs no empty back end, and leaves its records behind. A check that fails throws a
/// ``Failure`` that says what is wrong.
public enum Contract {
    /// All checks, in the order in which a report tells them.
    public static let checks = recording + changing + reading + following + listing + failing

    /// Runs all checks, one after the other.
    public static func run(_ harness: any BackendHarness) async -> Report {
        var report = Report()
        for check in checks {
            report.lines.append(Report.Line(name: check.name, outcome: await check.outcome(harness)))
        }
        return report
    }

    /// One thing an adapter must do.
    public struct Check: Sendable, CustomStringConvertible {
        /// What it must do, as a sentence.
        public let name: String
        let applies: @Sendable (BackendCapabilities) -> Bool
        let body: @Sendable (Subject) async throws -> Void

        /// The name, which is what a test's report shows.
        public var description: String { name }

        init(
            _ name: String, where applies: @escaping @Sendable (BackendCapabilities) -> Bool = { _ in true },
            _ body: @escaping @Sendable (Subject) async throws -> Void
        ) {
            self.name = name
            self.applies = applies
            self.body = body
        }

        /// Whether back ends with these capabilities have what is checked.
        public func applies(to capabilities: BackendCapabilities) -> Bool { applies(capabilities) }

        /// Checks one adapter.
        ///
        /// - Throws: ``Failure``, which says what is wrong, or whatever the harness throws. Skip what
        ///   ``applies(to:)`` leaves out.
        public func run(_ harness: any BackendHarness) async throws {
            try await harness.behave(.normal)
            do {
                try await body(Subject(harness: harness))
            } catch let error as BackendError {
                try await harness.behave(.normal)
                throw Failure("a call that should succeed failed: \(error)")
            } catch {
                try await harness.behave(.normal)
                throw error
            }
            try await harness.behave(.normal)
        }

        func outcome(_ harness: any BackendHarness) async -> Report.Outcome {
            guard applies(harness.backend(.granted).capabilities) else {
                return .skipped("the back end has no such thing")
            }
            do {
                try await run(harness)
                return .passed
            } catch let impossible as Impossible {
                return .skipped(impossible.description)
            } catch {
                return .failed("\(error)")
            }
        }
    }

    /// What an adapter does not keep.
    public struct Failure: Error, CustomStringConvertible {
        /// What is wrong, for who writes the adapter.
        public let description: String

        package init(_ description: String) { self.description = description }
    }

    /// How an adapter fared.
    public struct Report: Sendable, CustomStringConvertible {
        /// What became of a check.
        public enum Outcome: Equatable, Sendable {
            /// The adapter does it.
            case passed
            /// It does not: what is wrong.
            case failed(String)
            /// It was not tried: why not.
            case skipped(String)
        }

        /// A check with its outcome.
        public struct Line: Sendable {
            /// The check's name.
            public let name: String
            /// What became of it.
            public let outcome: Outcome
        }

        /// All checks, in their order.
        public internal(set) var lines: [Line] = []

        /// The checks that failed.
        public var failures: [Line] {
            lines.filter {
                switch $0.outcome {
                case .failed: true
                case .passed, .skipped: false
                }
            }
        }

        /// A line per check.
        public var description: String {
            lines.map { line in
                switch line.outcome {
                case .passed: "passed   \(line.name)"
                case .failed(let problem): "FAILED   \(line.name): \(problem)"
                case .skipped(let reason): "skipped  \(line.name): \(reason)"
                }
            }.joined(separator: "\n")
        }
    }
}
