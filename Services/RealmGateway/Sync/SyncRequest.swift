import Access
import Essentials
import FoundationEssentials
import HTTPServer
import Model
import ObjectStore

/// A parsed body of `POST /v1/sync`.
struct SyncRequest: Sendable {
    /// The device's cursors by realm, and the realms of `only` without one. An unreadable cursor counts as none.
    let cursors: [String: Cursor?]
    /// The only realms to open; `nil`: all realms of the caller, and those of `cursors`.
    let only: Set<String>?
    /// The whole environment, instead of realms.
    let all: EnvironmentRequest?
    let isLive: Bool
    /// The request of the PowerSync protocol, whose cursors depend on the generation; `nil` in the device API.
    var buckets: BucketRequest?

    /// Creates the equivalent of a request of the PowerSync protocol.
    init(_ buckets: BucketRequest) {
        cursors = [:]
        only = buckets.includesDefaults ? nil : Set(buckets.named.map(\.description))
        all = nil
        isLive = true
        self.buckets = buckets
    }

    /// - Parameter catalogue: The kinds of the caller's environment; only for integrations.
    /// - Throws: `Problem` 400.
    init(_ body: [UInt8], realmCountMax: Int, catalogue: KindCatalogue = .unloaded) throws(Problem) {
        let object = try Self.object(body, "The body")
        var cursors: [String: Cursor?]?
        var only: [String]?
        var isLive = false
        for member in object.members {
            let value = body[member.value]
            switch member.key {
            case "live":
                isLive = value.elementsEqual("true".utf8)
                guard isLive || value.elementsEqual("false".utf8) else {
                    throw Problems.malformed("'live' must be true or false.")
                }
            case "realms": cursors = try Self.cursors(Array(value), countMax: realmCountMax)
            case "only": only = try Self.paths(Array(value), countMax: realmCountMax)
            case "all":
                guard value.elementsEqual("true".utf8) else {
                    throw Problems.malformed("'all' must be true or absent.")
                }
            case "kinds", "cursor":
                guard object.isTrue("all") else {
                    throw Problems.malformed("'\(member.key)' requires 'all'; cursors of realms are in 'realms'.")
                }
            default: throw Problems.malformed("'\(member.key.excerpt)' is not a member of the body.")
            }
        }
        self.cursors = (cursors ?? [:]).merging((only ?? []).map { ($0, nil) }) { held, _ in held }
        self.only = only.map { Set($0) }
        self.isLive = isLive
        guard object.isTrue("all") else {
            all = nil
            return
        }
        guard cursors == nil else {
            throw Problems.malformed("'all' and 'realms' exclude each other: 'all' opens every realm.")
        }
        guard only == nil else {
            throw Problems.malformed("'all' and 'only' exclude each other: 'all' opens every realm.")
        }
        all = EnvironmentRequest(kinds: try Self.kinds(object, catalogue), cursor: try Self.cursor(object))
    }

    /// The realms that the request names.
    var named: [RealmPath] { buckets?.named ?? (only ?? Set(cursors.keys)).sorted().compactMap { RealmPath($0) } }

    /// Returns the kinds in `kinds`; by default all that an integration may read.
    private static func kinds(_ object: JSONObject, _ catalogue: KindCatalogue) throws(Problem) -> KindSelection {
        guard let value = object.value(of: "kinds") else {
            return KindSelection(Kind.allCases.filter(Permissions.isReadByIntegrations), includesOwn: true)
        }
        let readable = catalogue.all.filter(Permissions.isReadByIntegrations)
        let allowed = readable.map(\.rawValue).sorted().joined(separator: ", ")
        guard let names = try? JSONDecoder().decode([String].self, from: Data(value)), !names.isEmpty else {
            throw Problems.malformed("'kinds' must be a list of at least one of: \(allowed).")
        }
        for name in names where !readable.contains(where: { $0.rawValue == name }) {
            throw Problems.malformed("'\(name.excerpt)' in 'kinds' is not a readable kind; allowed: \(allowed).")
        }
        return KindSelection(readable.filter { names.contains($0.rawValue) })
    }

    private static func cursor(_ object: JSONObject) throws(Problem) -> Cursor? {
        guard let value = object.value(of: "cursor"), !value.elementsEqual("null".utf8) else { return nil }
        guard let text = object.text(of: "cursor") else {
            throw Problems.malformed("'cursor' must be a string or null.")
        }
        return Cursor(text)
    }

    private static func cursors(_ bytes: [UInt8], countMax: Int) throws(Problem) -> [String: Cursor?] {
        let realms = try object(bytes, "'realms'", memberCountMax: countMax)
        var cursors: [String: Cursor?] = [:]
        for realm in realms.members {
            guard let path = RealmPath(realm.key)?.description else {
                throw Problems.malformed("'\(realm.key.excerpt)' in 'realms' is not a realm's path.")
            }
            let text = realms.text(of: realm)
            guard text != nil || bytes[realm.value].elementsEqual("null".utf8) else {
                throw Problems.malformed("A cursor must be a string or null.")
            }
            // An environment's cursor is not valid for a realm.
            cursors[path] = .some(text.flatMap { Cursor($0) }.flatMap { $0.kinds == nil ? $0 : nil })
        }
        return cursors
    }

    /// Returns the paths in `only`.
    private static func paths(_ bytes: [UInt8], countMax: Int) throws(Problem) -> [String] {
        guard let paths = try? JSONDecoder().decode([String].self, from: Data(bytes)), !paths.isEmpty else {
            throw Problems.malformed("'only' must be a list of at least one realm's path.")
        }
        guard paths.count <= countMax else { throw Problems.malformed("'only' may have at most \(countMax) members.") }
        return try paths.map { text throws(Problem) in
            guard let path = RealmPath(text) else {
                throw Problems.malformed("'\(text.excerpt)' in 'only' is not a realm's path.")
            }
            return path.description
        }
    }

    private static func object(
        _ bytes: [UInt8], _ name: String, memberCountMax: Int = JSONCheck.memberCountMax
    ) throws(Problem) -> JSONObject {
        do {
            return try JSONObject(bytes, memberCountMax: memberCountMax)
        } catch {
            guard error.reason != .tooManyMembers else {
                throw Problems.malformed("\(name) may have at most \(memberCountMax) members.")
            }
            throw Problems.malformed("\(name): \(error).")
        }
    }
}
