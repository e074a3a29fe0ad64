internal import BackendContract
internal import BackendProtocol

/// Named checks of a client and a server against a ``CompassHarness``, as `BackendContract` for time back ends.
///
/// Each check is independent, and needs no empty database. It leaves records, but no query and no edit session.
package enum CompassContract {
    package static let checks = asking + editing + failing

    /// One thing that must hold.
    package struct Check: Sendable, CustomStringConvertible {
        /// The checked property, as a sentence.
        package let name: String
        private let body: @Sendable (CompassSubject) async throws -> Void

        package var description: String { name }

        init(_ name: String, _ body: @escaping @Sendable (CompassSubject) async throws -> Void) {
            self.name = name
            self.body = body
        }

        /// - Throws: `Contract.Failure` with the difference, or an error of the harness.
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
