import Essentials
import FoundationEssentials
import Model
import ObjectStore

/// Parses lines of `{"realm": PATH, "kind": KIND, "id": UUID, "fields": {…}}`.
struct ObjectLines {
    private let hasBackend: Bool
    private let catalogue: KindCatalogue
    /// A cache of parsed realms: there are fewer realms than lines.
    private var realms: [String: (path: RealmPath, name: RealmClass.Name)] = [:]

    /// The lines that one pass over a file imports: objects come before those that refer to them.
    enum Pass: CaseIterable {
        /// The `Person` and `Team` objects of `/common`.
        case referenced
        /// The other objects of `/common`.
        case common
        /// The objects of other realms, and invalid lines.
        case others

        private static let kinds = [Kind.person.rawValue, Kind.team.rawValue]

        init(_ object: JSONObject) {
            if object.text(of: "realm") != RealmPath.common.description {
                self = .others
            } else {
                self = object.text(of: "kind").map(Self.kinds.contains) == true ? .referenced : .common
            }
        }
    }

    private static let realmCountMax = 10_000
    private static let names = ["realm", "kind", "id", "fields", "email"]

    /// - Parameter catalogue: The kinds of the environment.
    init(hasBackend: Bool, catalogue: KindCatalogue) {
        (self.hasBackend, self.catalogue) = (hasBackend, catalogue)
    }

    /// The results by line number, and the updated cache of realms.
    struct Checked: Sendable {
        let lines: ObjectLines
        let results: [(line: Int, result: Result<ImportedObject, ImportProblem>)]
    }

    /// Maximum number of lines that are checked together.
    static let pageLinesMax = 1_000
    private static let pageBytesMax = 1 << 20

    /// Returns the next lines without empty ones; none at the end.
    static func page(of reader: inout LineReader) throws -> [LineReader.Line] {
        var (lines, byteCount): ([LineReader.Line], Int) = ([], 0)
        while lines.count < pageLinesMax, byteCount < pageBytesMax, let line = try reader.next() {
            if line.isBlank { continue }
            lines.append(line)
            byteCount += line.bytes?.count ?? 0
        }
        return lines
    }

    /// Checks lines, and skips those of other passes.
    func checked(_ page: [LineReader.Line], in pass: Pass?) -> Checked {
        var lines = self
        var results: [(line: Int, result: Result<ImportedObject, ImportProblem>)] = []
        results.reserveCapacity(page.count)
        for line in page {
            do throws(ImportProblem) {
                guard let bytes = line.bytes else {
                    if Self.skipsInvalidLines(in: pass) { continue }
                    throw ImportProblem("the line has more than \(LineReader.bytesMax) bytes")
                }
                if let object = try lines.object(bytes, in: pass) {
                    results.append((line.number, .success(object)))
                }
            } catch {
                results.append((line.number, .failure(error)))
            }
        }
        return Checked(lines: lines, results: results)
    }

    /// Returns the object of a line; `nil` if it belongs to another pass.
    ///
    /// - Parameter pass: The pass; `nil`: all lines.
    mutating func object(_ line: [UInt8], in pass: Pass?) throws(ImportProblem) -> ImportedObject? {
        if Self.skipsInvalidLines(in: pass), !Self.mayBeCommon(line) { return nil }
        let object: JSONObject
        do { object = try JSONObject(line) } catch {
            if Self.skipsInvalidLines(in: pass) { return nil }
            throw ImportProblem("\(error)")
        }
        if let pass, pass != Pass(object) { return nil }
        let text = object.text(of: "realm")
        for member in object.members where !Self.names.contains(member.key) {
            throw ImportProblem(
                "unknown key '\(member.key.excerpt)'; allowed: \(Self.names.joined(separator: ", "))")
        }
        let realm = try self.realm(text)
        guard let name = object.text(of: "kind") else { throw Self.missing("kind", object) }
        guard let kind = catalogue.kind(named: name) else { throw ImportProblem("unknown kind '\(name.excerpt)'") }
        if let objection = ImportRule.objection(to: kind, in: realm.name, hasBackend: hasBackend) {
            throw ImportProblem(objection)
        }
        guard let id = object.id(of: "id") else { throw Self.missing("id", object) }
        guard let fields = object.value(of: "fields") else { throw Self.missing("fields", object) }
        return try ImportedObject(
            kind, id, in: realm.path, fields: Array(fields), email: try Self.email(object, kind))
    }

    /// Whether invalid lines are skipped: one pass reports them.
    private static func skipsInvalidLines(in pass: Pass?) -> Bool { pass == .referenced || pass == .common }

    private static let commonText = Array(#""/common""#.utf8)

    /// Whether a line may name `/common`: without escapes it contains the literal text. This avoids parsing most lines.
    private static func mayBeCommon(_ line: [UInt8]) -> Bool {
        if line.contains(UInt8(ascii: "\\")) { return true }
        for (index, byte) in line.enumerated().dropFirst() where byte == commonText[1] {
            if line[(index - 1)...].starts(with: commonText) { return true }
        }
        return false
    }

    /// The normalised path: e-mail address and UUID in lower case.
    private mutating func realm(_ text: String?) throws(ImportProblem) -> (path: RealmPath, name: RealmClass.Name) {
        guard let text else { throw ImportProblem("'realm' is missing or not a string") }
        if let cached = realms[text] { return cached }
        if realms.count >= Self.realmCountMax { realms.removeAll() }
        var path: RealmPath
        do throws(InvalidRealmPath) {
            path = try RealmPath(validating: text)
            if let email = path.email { path = try .user(email) }
        } catch {
            throw ImportProblem("realm: \(error)")
        }
        if let id = path.catalogueID { path = .catalogue(id) }
        let realm = (path: path, name: path.realmClass.name)
        guard realm.name != .system else { throw ImportProblem("realm: '\(path)' does not exist") }
        realms[text] = realm
        return realm
    }

    private static func email(_ object: JSONObject, _ kind: Kind) throws(ImportProblem) -> String? {
        guard object.value(of: "email") != nil else { return nil }
        guard kind == .person else { throw ImportProblem("'email' is allowed for Person objects only") }
        guard let address = object.text(of: "email").flatMap({ EmailAddress($0) }) else {
            throw ImportProblem("'email' is not a valid address of a person")
        }
        return address.description
    }

    private static func missing(_ name: String, _ object: JSONObject) -> ImportProblem {
        guard object.value(of: name) != nil else { return ImportProblem("'\(name)' is missing") }
        return ImportProblem(name == "id" ? "'id' is not a UUID" : "'\(name)' has the wrong type")
    }
}
