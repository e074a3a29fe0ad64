public import BackendProtocol
public import Essentials
package import HTTPClient
import Model
internal import Synchronization

/// A kind of back end with an adapter: a built-in one, or one of another package that an executable adds.
public struct BackendKind: Sendable {
    /// The configuration of an adapter: an environment's own, and objects that the process shares.
    public struct Access: Sendable {
        /// Scheme, host and port.
        public var url: String
        /// Empty if the kind needs no user.
        public var user: String
        /// The password or token. It must not be logged.
        public var password: String
        /// The environment's templates; `nil` for the built-in ones.
        package var templates: TemplateDeclarations?
        /// The environment's ``BackendSetting``s by name, validated when they were stored.
        public var settings: [String: String]
        package var client: Client
        /// Timeout of a single HTTP call.
        public var callMax: Duration
        /// Returns the current day.
        public var today: @Sendable () -> Day

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

    /// Creates a kind with an adapter of another package, which has its own templates: environments cannot declare any.
    ///
    /// - Parameters:
    ///   - name: The name, as in `fieldpost environment add --backend`: 1 to 31 lower-case letters, digits and hyphens,
    ///     which begin with a letter. It is stored, and must not change.
    ///   - needsUser: Whether calls need a user name in addition to the password.
    ///   - settings: The settings of `--backend-setting`.
    ///   - make: Creates the adapter of an environment. It is called again when the environment's settings change.
    public init(
        name: String, needsUser: Bool, settings: [BackendSetting] = [],
        make: @escaping @Sendable (Access) -> any TimeBackend
    ) {
        self.init(
            BackendVocabulary(
                backend: name, lists: [], fields: [], builtIn: TemplateDeclarations(templates: []), settings: settings),
            needsUser: needsUser, make: make)
    }

    /// The name, as in `environment add --backend`.
    package var name: String { vocabulary.backend }
    /// Whether environments can declare templates.
    package var hasTemplateDeclarations: Bool { !vocabulary.lists.isEmpty }

    // MARK: All kinds

    private static let builtIn = [sap, economic]
    private static let added = Mutex<[BackendKind]>([])

    /// All kinds: the built-in ones, then those of other packages.
    package static var all: [BackendKind] { builtIn + added.withLock { $0 } }

    /// Adds kinds of other packages, before the process uses any kind.
    ///
    /// - Precondition: Their names are valid and unique.
    package static func add(_ kinds: [BackendKind]) {
        // Release builds print only this message.
        if let problem = problem(adding: kinds.map(\.name)) { fatalError(problem) }
        added.withLock { $0 += kinds }
    }

    /// Returns the reason why kinds with these names cannot be added; `nil` if they can.
    static func problem(adding names: [String]) -> String? {
        var present = Set(all.map(\.name) + ["none"])
        for name in names {
            let isValid = name.utf8.allSatisfy { byte in
                switch UnicodeScalar(byte) {
                case "a"..."z", "0"..."9", "-": true
                default: false
                }
            }
            guard isValid, 1...31 ~= name.utf8.count, name.first?.isLetter == true else {
                return "the kind of back end '\(name)' must be 1 to 31 lower-case letters, digits and hyphens, which "
                    + "begin with a letter"
            }
            guard present.insert(name).inserted else { return "there is already a kind of back end '\(name)'" }
        }
        return nil
    }

    /// Returns the kind with a name; `nil` if this process has no adapter for it.
    package static func named(_ name: String) -> BackendKind? { all.first { $0.name == name } }

    /// Returns the kind of an environment's back end.
    ///
    /// - Throws: ``MissingBackend`` if this process has no adapter for it.
    package static func named(_ name: String, of environment: String) throws(MissingBackend) -> BackendKind {
        if let kind = named(name) { return kind }
        throw MissingBackend(
            "environment \(environment) has a back end of kind '\(name)', but this program has adapters for "
                + "\(all.map(\.name).joined(separator: ", ")) only")
    }

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
