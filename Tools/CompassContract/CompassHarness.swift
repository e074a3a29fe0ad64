package import BackendContract
package import Compass

/// The environment of the contract: a server, and control of its faults.
///
/// The server is an emulator, or a test system of the vendor. A fault that is not possible there throws
/// `BackendContract.Impossible`: the corresponding checks are skipped.
package protocol CompassHarness: Sendable {
    /// The client of an account that may make, change and delete records.
    ///
    /// - Parameter pageRowsMax: Rows of a page; `nil`: as many as there usually are.
    func client(_ access: CompassAccess, pageRowsMax: Int?) -> CompassClient

    /// The login name of the account.
    var user: String { get }
    /// The values of a record that can be saved as it is, with a `Headline` among them.
    var values: [FieldValue] { get }
    /// A value that its field's list does not have.
    var impossibleValue: FieldValue { get }
    /// A field that a new record must have.
    var mandatoryField: String { get }
    /// An action from a new record's state, its mandatory fields, and the resulting state.
    var action: (name: String, value: FieldValue, state: String) { get }
    /// An action that cannot be done in a new record's state.
    var impossibleAction: String { get }
    /// A field whose list depends on another one's value: two values of that, with something in the list of each that
    /// the other's does not have.
    var dependent: (field: String, on: String, choices: [(value: String, choice: String)]) { get }
    /// An id as the server's are, which no record has.
    var unknownID: String { get }

    /// Makes the server behave so from now on.
    func behave(_ behaviour: BackendBehaviour) async throws

    /// Ends all tokens, as their expiry would.
    func endTokens() async throws
}

/// Whom a client calls, and as whom.
package enum CompassAccess: Sendable {
    /// The server, with a password it accepts.
    case granted
    /// Another user who may change the same records.
    case other
    /// With a personal access token.
    case token
    /// With a password, or a token, that it does not accept.
    case wrongPassword
    case wrongToken
    /// An address where nothing listens.
    case nowhere
}
