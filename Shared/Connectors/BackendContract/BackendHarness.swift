public import BackendProtocol
public import Essentials
import Model

/// What the contract needs beside an adapter: a back end to try it on, and somebody behind it who makes it misbehave.
///
/// The back end is a stand-in, or a test system of the vendor's. What cannot be done there throws ``Impossible``: the
/// checks that need it are then skipped.
public protocol BackendHarness: Sendable {
    /// The adapter.
    func backend(_ access: BackendAccess) -> any TimeBackend

    /// Somebody who may register time.
    var person: BackendPerson { get }
    /// Somebody else who may.
    var otherPerson: BackendPerson { get }
    /// The first of ten days on which they may.
    var firstDay: Day { get }
    /// What they may report on: context name → `referenceId`, as ``Submission/references``.
    var references: [String: String] { get }
    /// Other such references.
    var otherReferences: [String: String] { get }
    /// References to what is not there.
    var impossibleReferences: [String: String] { get }
    /// An id as the back end's are, which no record has.
    var unknownID: String { get }

    /// Makes the back end behave so from now on.
    func behave(_ behaviour: BackendBehaviour) async throws

    /// Approves a record.
    func approve(_ id: String) async throws

    /// Refuses a record as an approver does. Only called where the back end has rejection.
    func reject(_ id: String) async throws

    /// Makes the back end keep texts in another form until ``behave(_:)`` is called: LF for CR LF, fewer blanks, `?`
    /// for an emoji. Throws ``Impossible`` unless a harness implements it.
    func alterTexts() async throws
}

extension BackendHarness {
    /// For back ends that keep texts as they come.
    public func alterTexts() async throws { throw Impossible("the back end keeps texts as they come") }
}

/// Whom an adapter calls, and as whom.
public enum BackendAccess: Sendable {
    /// The back end, with credentials it accepts.
    case granted
    /// The back end, with credentials it does not accept.
    case wrongCredentials
    /// An address where nothing listens.
    case nowhere
}

/// How a back end goes about its calls.
public enum BackendBehaviour: Equatable, Sendable {
    /// As it should.
    case normal
    /// It answers every call with a server error (5xx), and does nothing.
    case failing
    /// It does every write, and answers it with a server error (5xx). Reads go on.
    case failingAfterWrite
    /// It does every write, and closes the connection without an answer. Reads go on.
    case losingAnswers
    /// It answers every call that there are too many (429), and names the time after which to try again.
    case overloaded(retryAfter: Duration)
    /// It answers no call for half a minute.
    case stuck
}

/// A harness cannot do what a check needs; the check is skipped.
public struct Impossible: Error, CustomStringConvertible {
    /// Why not.
    public let description: String

    /// Says why not.
    public init(_ description: String) { self.description = description }
}
