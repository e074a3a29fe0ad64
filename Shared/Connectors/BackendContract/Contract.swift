public import BackendProtocol

/// The requirements for every adapter: named checks that run against a ``BackendHarness``.
///
/// Checks are independent, need no empty back end, and leave their records behind. A failed check throws a ``Failure``
/// with the reason.
public enum Contract {
    /// All checks, in the order of a ``Report``.
    public static let checks = recording + changing + reading + following + listing + failing

    /// Runs all checks sequentially.
    public static func run(_ harness: any BackendHarness) async -> Report {
        var report = Report()
        for check in checks {
            report.lines.append(Report.Line(name: check.name, outcome: await check.outcome(harness)))
        }
        return report
    }

    /// One requirement for an adapter.
    public struct Check: Sendable, CustomStringConvertible {
        /// The requirement, as a sentence.
        public let name: String
        let applies: @Sendable (BackendCapabilities) -> Bool
        let body: @Sendable (ContractSubject) async throws -> Void

        /// The name, which test reports display.
        public var description: String { name }

        init(
            _ name: String, where applies: @escaping @Sendable (BackendCapabilities) -> Bool = { _ in true },
            _ body: @escaping @Sendable (ContractSubject) async throws -> Void
        ) {
            self.name = name
            self.applies = applies
            self.body = body
        }

        /// Returns whether the check is applicable to back ends with these capabilities.
        public func applies(to capabilities: BackendCapabilities) -> Bool { applies(capabilities) }

        /// Runs the check against one adapter. Call it only if ``applies(to:)``.
        ///
        /// - Throws: ``Failure`` if the adapter does not meet the requirement; ``Impossible`` or another error of the
        ///   harness.
        public func run(_ harness: any BackendHarness) async throws {
            try await harness.behave(.normal)
            do {
                try await body(ContractSubject(harness: harness))
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
                return .skipped("not supported by the back end")
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

    /// A requirement that an adapter does not meet.
    public struct Failure: Error, CustomStringConvertible {
        /// The reason, for the author of the adapter.
        public let description: String

        package init(_ description: String) { self.description = description }
    }

    /// The outcomes of all checks for one adapter.
    public struct Report: Sendable, CustomStringConvertible {
        /// The outcome of a check.
        public enum Outcome: Equatable, Sendable {
            /// The adapter meets the requirement.
            case passed
            /// The adapter does not meet the requirement, with the reason.
            case failed(String)
            /// The check was not run, with the reason.
            case skipped(String)
        }

        /// A check with its outcome.
        public struct Line: Sendable {
            /// The check's name.
            public let name: String
            /// The outcome of the check.
            public let outcome: Outcome
        }

        /// All checks in their order.
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

        /// One line per check.
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
