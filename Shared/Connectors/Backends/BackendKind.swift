package import BackendProtocol
package import Essentials
package import HTTPClient
import Model

/// A kind of back end with an adapter. Each kind has a folder, and an element of ``all``.
package struct BackendKind: Sendable {
    /// The configuration of an adapter: an environment's own, and objects that the process shares.
    package struct Access: Sendable {
        /// Scheme, host and port.
        package var url: String
        /// Empty if ``BackendKind/needsUser`` is false.
        package var user: String
        package var password: String
        /// The environment's templates; `nil` for the built-in ones.
        package var templates: TemplateDeclarations?
        /// The environment's ``BackendSetting``s by name, validated when they were stored.
        package var settings: [String: String]
        package var client: Client
        /// Timeout of a single HTTP call.
        package var callMax: Duration
        package var today: @Sendable () -> Day

        package init(
            url: String, user: String, password: String, templates: TemplateDeclarations?,
            settings: [String: String], client: Client, callMax: Duration, today: @escaping @Sendable () -> Day
        ) {
            self.url = url
            self.user = user
            self.password = password
            self.templates = templates
            self.settings = settings
            self.client = client
            self.callMax = callMax
            self.today = today
        }
    }

    /// The lists, fields and settings that an environment can refer to.
    package let vocabulary: BackendVocabulary
    /// Whether calls need a user name in addition to the password.
    package let needsUser: Bool
    /// Returns the reason why a password cannot be used, as the end of a sentence and without the password; `nil` if it
    /// can.
    package let passwordProblem: @Sendable (String) -> String?
    private let make: @Sendable (Access) -> (any TimeBackend)?

    /// - Parameters:
    ///   - make: Creates the adapter; `nil` only if the password cannot be used.
    init(
        _ vocabulary: BackendVocabulary, needsUser: Bool,
        passwordProblem: @escaping @Sendable (String) -> String? = { _ in nil },
        make: @escaping @Sendable (Access) -> (any TimeBackend)?
    ) {
        self.vocabulary = vocabulary
        self.needsUser = needsUser
        self.passwordProblem = passwordProblem
        self.make = make
    }

    /// The name, as in `environment add --backend`.
    package var name: String { vocabulary.backend }

    /// All kinds.
    package static let all = [sap, economic]

    /// Returns the kind with a name; `nil` if there is no adapter for it.
    package static func named(_ name: String) -> BackendKind? { all.first { $0.name == name } }

    /// Creates the adapter.
    ///
    /// - Throws: ``MissingBackend`` if the password cannot be used.
    package func adapter(_ access: Access) throws(MissingBackend) -> any TimeBackend {
        guard let adapter = make(access) else {
            throw MissingBackend(
                "the back end's password " + (passwordProblem(access.password) ?? "cannot be used"))
        }
        return adapter
    }
}
