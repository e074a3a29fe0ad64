import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import NIOCore
import ServiceSettings

/// The files of the field app, served under `/app/`; disabled by default.
///
/// All files are read once, at start. A request names an entry of this list and never a path of the machine.
struct AppFolder: Sendable {
    /// A file with its content.
    struct File: Sendable {
        let type: String
        let content: Content
        /// The content of the file with the suffix `.gz`, if the folder has it.
        let compressed: Content?
    }

    /// A content and its entity tag.
    struct Content: Sendable {
        let bytes: ByteBuffer
        let tag: String

        init(_ bytes: [UInt8]) {
            self.bytes = ByteBuffer(bytes: bytes)
            tag = "\"\(Base64URL.text(Array(SHA256.hash(data: bytes)).prefix(12)))\""
        }
    }

    /// Files by their path below the folder, and the generated `config.json`.
    let files: [String: File]
    /// The folder's files that are not served, because their type or name is not supported.
    let ignored: [String]
    private let policy: String

    static let fileCountMax = 500
    static let bytesMax = 8 << 20
    private static let entryName = "index.html"
    private static let compressedSuffix = ".gz"

    /// Reads the folder.
    ///
    /// - Parameter gateway: The device API's base URL, without a trailing slash, as browsers reach it.
    /// - Throws: If the folder has no `index.html`, is unreadable or exceeds a limit, or browsers cannot use the URL.
    init(_ path: String, gateway: String) throws(ConfigurationError) {
        guard let origin = Self.origin(of: gateway) else {
            throw ConfigurationError(
                "\(Settings.gateway.variable) must be an https URL, or an http URL of localhost, if "
                    + "\(Settings.appFolder.variable) is set")
        }
        let contents = try Self.read(path)
        var files: [String: File] = [:]
        var ignored: [String] = []
        for (name, bytes) in contents {
            if name.hasSuffix(Self.compressedSuffix), contents[String(name.dropLast(3))] != nil { continue }
            guard let type = Self.type(of: name) else {
                ignored.append(name)
                continue
            }
            let compressed = contents[name + Self.compressedSuffix].map { Content($0) }
            files[name] = File(type: type, content: Content(bytes), compressed: compressed)
        }
        guard files[Self.entryName] != nil else {
            throw ConfigurationError("\(Settings.appFolder.variable): \(path) has no \(Self.entryName)")
        }
        var json = Array(#"{"gateway":"#.utf8)
        JSONText.append(gateway, to: &json)
        json.append(UInt8(ascii: "}"))
        files["config.json"] = File(type: "application/json", content: Content(json), compressed: nil)
        self.files = files
        self.ignored = ignored.sorted()
        policy =
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
            + "connect-src 'self' \(origin); manifest-src 'self'; worker-src 'self'; form-action 'none'; "
            + "frame-ancestors 'none'; base-uri 'none'"
    }

    func addRoutes(to router: Router<EdgeContext>) {
        router.get("/app") { request, _ in try response(to: request) }
        router.get("/app/**") { request, _ in try response(to: request) }
    }

    // MARK: Responses

    private func response(to request: Request) throws -> Response {
        let path = request.uri.path
        if path == "/app" { return Response(status: .permanentRedirect, headers: [.location: "/app/"]) }
        let name = path.hasPrefix("/app/") ? String(path.dropFirst("/app/".count)) : nil
        guard let file = name.flatMap({ files[$0.isEmpty ? Self.entryName : $0] }) else {
            throw Problem(.notFound, detail: "The app has no file of this name.")
        }
        var fields: HTTPFields = [
            .contentType: file.type, .cacheControl: "no-cache", .contentSecurityPolicy: policy,
            .xContentTypeOptions: "nosniff",
        ]
        var content = file.content
        if let compressed = file.compressed {
            fields[.vary] = "Accept-Encoding"
            if request.headers.acceptsGzip {
                content = compressed
                fields[.contentEncoding] = "gzip"
            }
        }
        fields[.eTag] = content.tag
        if Self.names(content.tag, in: request.headers[.ifNoneMatch] ?? "") {
            return Response(status: .notModified, headers: fields)
        }
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: content.bytes))
    }

    /// Whether an `If-None-Match` field names a tag, by weak comparison (RFC 9110 §13.1.2).
    private static func names(_ tag: String, in field: String) -> Bool {
        HTTPFields.listItems(field).contains { $0 == "*" || $0 == tag || $0 == "W/" + tag }
    }

    // MARK: Reading

    /// The content of all files that are not hidden.
    private static func read(_ path: String) throws(ConfigurationError) -> [String: [UInt8]] {
        let variable = Settings.appFolder.variable
        let manager = FileManager.default
        let names: [String]
        do {
            names = try manager.subpathsOfDirectory(atPath: path)
        } catch {
            throw ConfigurationError("\(variable): the folder \(path) cannot be read")
        }
        var contents: [String: [UInt8]] = [:]
        var byteCount = 0
        for name in names where !name.split(separator: "/").contains(where: { $0.hasPrefix(".") }) {
            let file = path + "/" + name
            let type = (try? manager.attributesOfItem(atPath: file))?[.type] as? FileAttributeType
            guard type == .typeRegular || type == .typeSymbolicLink else { continue }
            guard let data = manager.contents(atPath: file) else {
                // A link to a folder.
                if type == .typeSymbolicLink { continue }
                throw ConfigurationError("\(variable): \(file) cannot be read")
            }
            contents[name] = Array(data)
            byteCount += data.count
            guard contents.count <= fileCountMax, byteCount <= bytesMax else {
                throw ConfigurationError(
                    "\(variable): \(path) has more than \(fileCountMax) files or \(bytesMax) bytes")
            }
        }
        return contents
    }

    /// Returns the media type of a file by its name; `nil` if a file of this name is not served.
    static func type(of name: String) -> String? {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "/"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isPlain, let end = name.lastIndex(of: ".") else { return nil }
        if name.hasSuffix(".d.ts") { return "text/plain; charset=utf-8" }
        return types[String(name[name.index(after: end)...])]
    }

    private static let types = [
        "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "mjs": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "json": "application/json",
        "webmanifest": "application/manifest+json", "svg": "image/svg+xml", "png": "image/png",
        "txt": "text/plain; charset=utf-8",
    ]

    /// Returns the origin of a URL that browsers can call; `nil` for others.
    ///
    /// It becomes part of a content security policy, so its characters are restricted.
    static func origin(of url: String) -> String? {
        guard OpenIDProvider.isUsable(url), let start = url.firstRange(of: "://") else { return nil }
        let host = url[start.upperBound...].prefix { $0 != "/" }
        let isPlain = host.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ".-:[]".contains($0)) }
        return isPlain && !host.isEmpty ? String(url[..<start.upperBound] + host) : nil
    }
}
