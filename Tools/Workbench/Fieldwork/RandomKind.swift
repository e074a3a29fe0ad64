import Essentials
import FoundationEssentials
import KindSchema
import Model

/// A random kind that an environment of `converge` declares, and what its declaration allows. The evaluation is
/// independent of the services'.
struct RandomKind: Sendable {
    enum Realm: String, CaseIterable, Sendable {
        case user, team, common, manager

        /// The people to whom a permission in such a realm can apply.
        var writers: [Writer] {
            switch self {
            case .user: [.owner]
            case .team: [.member, .manager]
            case .common: [.manager, .person]
            case .manager: [.manager]
            }
        }

        init?(_ path: RealmPath) {
            switch path.realmClass {
            case .user: self = .user
            case .team: self = .team
            case .common: self = .common
            case .manager: self = .manager
            case .users, .catalogue, .archive, .share, .system: return nil
            }
        }
    }

    enum Writer: String, Sendable { case owner, member, manager, person }
    enum Act: String, CaseIterable, Sendable { case create, change, delete }

    /// The permissions in the realms of a class.
    struct Rules: Sendable {
        /// Acts without people are not permitted.
        var writers: [Act: [Writer]] = [:]
        /// The fields that a change may write.
        var changeable: Set<String> = []
    }

    let kind: Kind
    /// The first version of the file that has the kind.
    let version: Int
    let hasNaturalIDs: Bool
    let fields: [RandomField]
    let rules: [Realm: Rules]

    /// The only required field.
    static let required = "title"

    init(_ kind: Kind, version: Int, _ random: inout SplitMix64) {
        (self.kind, self.version) = (kind, version)
        hasNaturalIDs = random.happens(40)
        var fields = [RandomField(name: Self.required, form: .text, version: version)]
        for (index, form) in RandomField.Form.allCases.shuffled(using: &random).prefix(6).enumerated() {
            // The last field is new in the second version.
            fields.append(
                RandomField(
                    name: "field\(index)", form: form, isReadOnly: index < 5 && random.happens(20),
                    version: index < 5 ? version : RandomKinds.versionCount))
        }
        self.fields = fields
        let names = fields.filter { !$0.isReadOnly }.map(\.name)
        var rules: [Realm: Rules] = [:]
        for realm in random.subset(Realm.allCases) {
            var here = Rules(changeable: Set(random.subset(names)))
            for act in Act.allCases where act == .create || random.happens(85) {
                here.writers[act] = random.subset(realm.writers)
            }
            rules[realm] = here
        }
        self.rules = rules
    }

    /// Returns the permissions in a realm; `nil` if the kind is not in realms of its class.
    func rules(in path: RealmPath) -> Rules? { Realm(path).flatMap { rules[$0] } }

    /// Returns the fields that people may write in a version of the file.
    func writable(_ version: Int) -> [RandomField] { fields.filter { !$0.isReadOnly && $0.version <= version } }

    private func field(_ name: String, _ version: Int) -> RandomField? {
        fields.first { $0.name == name && $0.version <= version }
    }

    // MARK: The declaration

    /// Returns the declaration in a version of the file.
    func declaration(_ version: Int) -> String {
        func list(_ values: [String]) -> String { "[\(values.map { "\"\($0)\"" }.joined(separator: ","))]" }
        let realms = Realm.allCases.filter { rules[$0] != nil }
        let properties = fields.filter { $0.version <= version }.map { "\"\($0.name)\":\($0.schema(version))" }
        var permissions: [String] = []
        for realm in realms {
            for act in Act.allCases {
                guard let rule = rules[realm], let writers = rule.writers[act] else { continue }
                let names = writable(version).map(\.name).filter(rule.changeable.contains)
                permissions.append(
                    #"{"who":\#(list(writers.map(\.rawValue))),"may":["\#(act.rawValue)"],"#
                        + #""realms":["\#(realm.rawValue)"]\#(act == .change ? ",\"fields\":\(list(names))" : "")}"#)
            }
        }
        return #"{"realms":\#(list(realms.map(\.rawValue))),"ids":"\#(hasNaturalIDs ? "natural" : "random")","#
            + #""properties":{\#(properties.joined(separator: ","))},"required":["\#(Self.required)"],"#
            + #""permissions":[\#(permissions.joined(separator: ","))]}"#
    }

    // MARK: What it allows

    /// Returns the reason why an act is not permitted in a version of the file.
    ///
    /// - Parameters:
    ///   - values: The written fields.
    ///   - isWriter: Whether the person belongs to these people.
    func objection(
        to act: Act, _ values: [String: SchemaValue], in realm: RealmPath, _ version: Int, isWriter: (Writer) -> Bool
    ) -> String? {
        guard let rule = rules(in: realm) else { return "it is not in such realms" }
        guard rule.writers[act]?.contains(where: isWriter) == true else { return "its writer may not \(act.rawValue)" }
        if act == .create, values[Self.required] == nil { return "it has no \(Self.required)" }
        for (name, value) in values {
            guard let field = field(name, version), !field.isReadOnly else { return "it writes \(name)" }
            if act == .change, !rule.changeable.contains(name) { return "it changes \(name)" }
            let isMissing = name == Self.required && value == .null
            if isMissing || !field.allows(value, version) { return "\(name) is invalid" }
        }
        return nil
    }
}

/// The random kinds of an environment, in the versions of its schema file.
struct RandomKinds: Sendable {
    static let versionCount = 2
    /// Environments have kinds of the same names, with different declarations.
    private static let names = ["Inspection", "Meter", "Visit", "Site"]

    let list: [RandomKind]
    /// The ids of objects of kinds with natural ids.
    let naturalIDs: [UUID]

    init(seed: UInt64) {
        var random = SplitMix64(seed: SplitMix64.mixed(seed))
        naturalIDs = (0..<6).map { _ in random.id() }
        list = Self.names.enumerated().compactMap { index, name in
            Kind(named: name).map { RandomKind($0, version: index < 3 ? 1 : 2, &random) }
        }
    }

    /// The declaration of a kind; `nil` for other kinds.
    subscript(_ kind: Kind) -> RandomKind? { list.first { $0.kind == kind } }

    /// Returns a version of the file.
    func file(_ version: Int) -> String {
        let kinds = list.filter { $0.version <= version }.map { "\"\($0.kind.rawValue)\":\($0.declaration(version))" }
        return "{\"kinds\":{\(kinds.joined(separator: ","))}}"
    }
}

extension SplitMix64 {
    /// Returns at least one of some values, in their order.
    mutating func subset<Value>(_ values: [Value]) -> [Value] {
        let chosen = values.filter { _ in happens(50) }
        return chosen.isEmpty ? values.randomElement(using: &self).map { [$0] } ?? [] : chosen
    }
}
