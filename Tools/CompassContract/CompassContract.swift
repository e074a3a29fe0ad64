internal import BackendContract
internal import BackendProtocol

/// What the client and a server must do together: named checks against a ``CompassHarness``, as `BackendContract` has
/// them for time back ends.
///
/// Each check stands alone, needs no empty database, and leaves its records behind, but no query and no edit session.
package enum CompassContract {
    package static let checks = asking + editing + failing

    /// One thing that must hold.
    package struct Check: Sendable, CustomStringConvertible {
        /// What, as a sentence.
        package let name: String
        private let body: @Sendable (CompassSubject) async throws -> Void

        package var description: String { name }

        init(_ name: String, _ body: @escaping @Sendable (CompassSubject) async throws -> Void) {
            self.name = name
            self.body = body
        }

        /// - Throws: `Contract.Failure`, which says what is wrong, or whatever the harness throws.
        package func run(_ harness: any CompassHarness) async throws {
            try await harness.behave(.normal)
            do {
                try await body(CompassSubject(harness: harness))
            } catch let error as BackendError {
                try await harness.behave(.normal)
                throw Contract.Failure("a call that should succeed failed: \(error)")
            } catch {
                try await harness.behave(.normal)
                throw error
            }
            try await harness.behave(.normal)
        }
    }
}
