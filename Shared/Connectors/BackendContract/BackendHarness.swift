public import BackendProtocol
public import Essentials
import Model

/// The test environment of an adapter: a back end with test data, and control over its behaviour.
///
/// The back end is an emulator or a test system of the vendor. An operation that it does not support throws
/// ``Impossible``; the checks that need it are skipped.
public protocol BackendHarness: Sendable {
    /// Returns an adapter for the back end, or for a misconfigured variant of it.
    func backend(_ access: BackendAccess) -> any TimeBackend

    /// A person who may register time.
    var person: BackendPerson { get }
    /// Another person who may register time.
    var otherPerson: BackendPerson { get }
    /// The first of ten days on which both may register time.
    var firstDay: Day { get }
    /// Nodes that both may report on: `referenceId` by context name, as `Submission.references`.
    var references: [String: String] { get }
    /// Different nodes that both may report on.
    var otherReferences: [String: String] { get }
    /// References to nodes that do not exist.
    var invalidReferences: [String: String] { get }
    /// A well-formed id of no record.
    var unknownID: String { get }

    /// Sets the behaviour of the back end from now on.
    func behave(_ behaviour: BackendBehaviour) async throws

    /// Approves a record.
    func approve(_ id: String) async throws

    /// Rejects a record as an approver does. Called only if `BackendCapabilities.hasRejection`.
    func reject(_ id: String) async throws

    /// Makes the back end alter texts until ``behave(_:)`` is called: LF for CR LF, fewer blanks, `?` for an emoji.
    ///
    /// The default implementation throws ``Impossible``.
    func alterTexts() async throws
}

extension BackendHarness {
    /// Throws, for back ends that store texts unchanged.
    public func alterTexts() async throws { throw Impossible("the back end stores texts unchanged") }
}

/// The address and credentials that an adapter uses.
public enum BackendAccess: Sendable {
    /// The back end, with valid credentials.
    case granted
    /// The back end, with invalid credentials.
    case wrongCredentials
    /// An address without a listener.
    case unreachable
}

/// The behaviour of a back end under test.
public enum BackendBehaviour: Equatable, Sendable {
    /// Calls succeed.
    case normal
    /// Every call fails with a server error (5xx), and nothing is written.
    case failing
    /// Every write is processed, and its response is a server error (5xx). Reads succeed.
    case failingAfterWrite
    /// Every write is processed, and the connection is closed without a response. Reads succeed.
    case losingResponses
    /// Every call is rejected with 429 Too Many Requests and `Retry-After`.
    case overloaded(retryAfter: Duration)
    /// Responses are delayed by at least 30 s.
    case stuck
}

/// An operation that a harness does not support; the check that needs it is skipped.
public struct Impossible: Error, CustomStringConvertible {
    /// The reason.
    public let description: String

    /// Creates the error with its reason.
    public init(_ description: String) { self.description = description }
}
