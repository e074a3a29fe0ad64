package import BackendProtocol
package import Essentials
package import HTTPClient
import Model

/// A kind of back end that there is an adapter for. A back end is a folder with an adapter in it, and a row of ``all``.
package struct BackendKind: Sendable {
    /// What an adapter is made of: an environment's own configuration, and what all of a process share.
    package struct Access: Sendable {
        /// Scheme, host and port.
        package var url: String
        /// Empty where ``BackendKind/needsUser`` is false.
        package var user: String
        package var password: String
        /// What the environment's people can register; `nil`: what the kind has by itself.
        package var templates: TemplateDeclarations?
        /// The environment's ``BackendSetting``s by name, as they were checked when they were stored.
        package var settings: [String: String]
        package var client: Client
        /// The longest a single HTTP call may take.
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

    /// What an environment can say about it.
    package let vocabulary: BackendVocabulary
    /// Whether it is called with a user beside the password.
    package let needsUser: Bool
    /// What is wrong with a password, as the end of a sentence about it, without the password itself; `nil` when it can
    /// be one.
    package let objectionToPassword: @Sendable (String) -> String?
    private let make: @Sendable (Access) -> (any TimeBackend)?

    /// - Parameters:
    ///   - make: The adapter; `nil` only where the password is objected to.
    init(
        _ vocabulary: BackendVocabulary, needsUser: Bool,
        objectionToPassword: @escaping @Sendable (String) -> String? = { _ in nil },
        make: @escaping @Sendable (Access) -> (any TimeBackend)?
    ) {
        self.vocabulary = vocabulary
        self.needsUser = needsUser
        self.objectionToPassword = objectionToPassword
        self.make = make
    }

    /// As `environment add --backend` names it.
    package var name: String { vocabulary.backend }

    /// Every kind there is.
    package static let all = [sap, economic]

    /// The kind of a name; `nil` when there is no adapter for it.
    package static func named(_ name: String) -> BackendKind? { all.first { $0.name == name } }

    /// Makes the adapter.
    ///
    /// - Throws: ``MissingBackend`` when the password cannot be one.
    package func adapter(_ access: Access) throws(MissingBackend) -> any TimeBackend {
        guard let adapter = make(access) else {
            throw MissingBackend(
                "the back end's password " + (objectionToPassword(access.password) ?? "cannot be used"))
        }
        return adapter
    }
}
