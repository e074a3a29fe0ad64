import FoundationEssentials
import HTTPServer
import Model
import ObjectStore

/// A parsed body of `POST /sync/stream`. Unknown members are ignored, because clients of later versions send more.
struct BucketRequest: Sendable {
    /// The name of the default stream: all realms of the person.
    static let defaultStream = "realms"
    /// The name of the stream to which a device subscribes with a realm's `path`.
    static let realmStream = "realm"

    /// Maximum number of buckets: a person has at most 1,000 teams, 1,000 shares and a few other realms.
    private static let bucketCountMax = 3_000

    /// The client's database; `nil` if the request has no readable id.
    let clientID: UUID?
    let includesDefaults: Bool
    /// The realms of the subscriptions, in their order; `nil` for one that names no realm.
    let subscriptions: [RealmPath?]
    /// The positions of the buckets that the device has, by their names.
    private let held: [String: Int64]

    private struct Body: Decodable {
        struct Bucket: Decodable {
            let name: String
            let after: String
        }
        struct Subscription: Decodable {
            struct Parameters: Decodable { let path: String }
            enum CodingKeys: CodingKey { case stream, parameters }
            let stream: String
            /// `nil` also for parameters of another form, which are an error of the subscription only.
            let parameters: Parameters?

            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: CodingKeys.self)
                stream = try members.decode(String.self, forKey: .stream)
                parameters = try? members.decode(Parameters.self, forKey: .parameters)
            }
        }
        struct Streams: Decodable {
            let include_defaults: Bool?
            let subscriptions: [Subscription]?
        }
        let buckets: [Bucket]?
        let client_id: String?
        let streams: Streams?
    }

    /// - Throws: `Problem` 400.
    init(_ bytes: [UInt8], subscriptionCountMax: Int) throws(Problem) {
        let body: Body
        do {
            body = try JSONDecoder().decode(Body.self, from: Data(bytes))
        } catch {
            throw Problems.malformed("The body is not a request of the PowerSync protocol: \(error.excerpt).")
        }
        let buckets = body.buckets ?? []
        let subscriptions = body.streams?.subscriptions ?? []
        guard buckets.count <= Self.bucketCountMax, subscriptions.count <= subscriptionCountMax else {
            throw Problems.malformed(
                "At most \(Self.bucketCountMax) buckets and \(subscriptionCountMax) subscriptions are allowed.")
        }
        clientID = body.client_id.flatMap { UUID(uuidString: $0) }
        includesDefaults = body.streams?.include_defaults ?? true
        self.subscriptions = subscriptions.map { subscription in
            guard subscription.stream == Self.realmStream else { return nil }
            return subscription.parameters.flatMap { RealmPath($0.path) }
        }
        // Of a repeated bucket the earlier position is used: what follows is sent again.
        held = Dictionary(buckets.map { ($0.name, Int64($0.after) ?? 0) }) { min($0, $1) }
    }

    /// The realms that the subscriptions name.
    var named: [RealmPath] { Set(subscriptions.compactMap(\.self)).sorted() }

    /// Returns the highest position of the buckets of other generations: the database was restored, or the environment
    /// moved, since the device's last request. All later positions are higher.
    ///
    /// - Returns: `nil` if there are no such buckets.
    func position(exceptOf generation: Int64) -> Int64? {
        let prefix = "\(generation):"
        return held.lazy.filter { !$0.key.hasPrefix(prefix) }.map(\.value).max()
    }

    /// Returns the cursors of the buckets of a generation. Other buckets are not in the first checkpoint, and the
    /// device removes them.
    func cursors(generation: Int64) -> [String: Cursor?] {
        var cursors: [String: Cursor?] = [:]
        for (name, position) in held {
            guard let colon = name.firstIndex(of: ":"), name[..<colon] == String(generation),
                let path = RealmPath(String(name[name.index(after: colon)...]))
            else { continue }
            // Position 0: nothing, or a part of a download that was cut.
            cursors[path.description] =
                position > 0 ? Cursor(generation: generation, start: position, position: position) : .some(nil)
        }
        return cursors
    }
}

extension DecodingError {
    /// The member and the reason, without the value.
    fileprivate var excerpt: String {
        let context: Context =
            switch self {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                .dataCorrupted(let context):
                context
            @unknown default: Context(codingPath: [], debugDescription: "not readable")
            }
        let path = context.codingPath.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }.joined(separator: ".")
        return path.isEmpty ? "it is no such JSON object" : "'\(path)' has another type, or is missing"
    }
}

extension Error {
    fileprivate var excerpt: String { (self as? DecodingError)?.excerpt ?? "it is no JSON" }
}
