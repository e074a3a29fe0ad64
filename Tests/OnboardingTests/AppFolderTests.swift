import Foundation
import HTTPClient
import LocalCluster
import ServiceSettings
import TestSupport
import Testing

@testable import Onboarding

/// The field app's files, as onboarding serves them.
@Suite(.ownThreads) struct AppFolderTests {
    private static let gateway = "https://device.example.com:8443/api"

    private static let files = [
        "index.html": "<!doctype html>", "app.js": "export {};", "core/time.mjs": "export {};", "app.css": "body {}",
        "fieldpost.d.ts": "export {};", "strings.json": "{}", "manifest.webmanifest": "{}", "icons/icon.svg": "<svg/>",
        "icons/icon.png": "png", "licence.txt": "MIT",
        // Not served.
        ".hidden.js": "secret", "core/.folder/a.js": "secret", "notes.md": "secret", "a b.js": "secret",
    ]

    /// Runs `body` with the path of a folder with these files.
    private func withFolder(
        _ files: [String: String] = Self.files, _ body: (String) async throws -> Void
    ) async throws {
        let root = URL(filePath: NSTemporaryDirectory()).appendingPathComponent("app-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (name, text) in files {
            let file = root.appendingPathComponent("app/" + name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        try Data("secret".utf8).write(to: root.appendingPathComponent("outside.js"))
        try await body(root.appendingPathComponent("app").path)
    }

    private func get(
        _ path: String, _ headers: [(String, String)] = [], of fixture: OnboardingFixture
    ) async throws -> Response {
        try await fixture.client.send(Request("GET", fixture.url(path), headers: headers))
    }

    @Test func filesHaveTypeAndSecurityHeaders() async throws {
        try await withFolder { path in
            let app = try AppFolder(path, gateway: Self.gateway)
            #expect(app.ignored == ["a b.js", "notes.md"])
            try await withOnboarding(app: app) { fixture in
                let types = [
                    "": "text/html; charset=utf-8", "index.html": "text/html; charset=utf-8",
                    "app.js": "text/javascript; charset=utf-8", "core/time.mjs": "text/javascript; charset=utf-8",
                    "app.css": "text/css; charset=utf-8", "fieldpost.d.ts": "text/plain; charset=utf-8",
                    "strings.json": "application/json", "manifest.webmanifest": "application/manifest+json",
                    "icons/icon.svg": "image/svg+xml", "icons/icon.png": "image/png",
                    "licence.txt": "text/plain; charset=utf-8",
                ]
                for (name, type) in types {
                    let response = try await get("/app/" + name, of: fixture)
                    #expect(response.status == 200, "\(name)")
                    #expect(response.headers["Content-Type"] == type, "\(name)")
                    #expect(response.headers["X-Content-Type-Options"] == "nosniff")
                    #expect(response.headers["Cache-Control"] == "no-cache")
                    let policy = response.headers["Content-Security-Policy"] ?? ""
                    #expect(policy.contains("default-src 'none'; script-src 'self'; style-src 'self'; "))
                    #expect(policy.contains("connect-src 'self' https://device.example.com:8443; "), "\(policy)")
                    #expect(!policy.contains("unsafe"))
                    let content = Self.files[name.isEmpty ? "index.html" : name]
                    #expect(String(decoding: response.body, as: UTF8.self) == content, "\(name)")
                }
                let config = try await get("/app/config.json", of: fixture)
                #expect(config.headers["Content-Type"] == "application/json")
                let values = try JSONDecoder().decode([String: String].self, from: Data(config.body))
                #expect(values == ["gateway": Self.gateway])
                let redirect = try await get("/app", of: fixture)
                #expect(redirect.status == 308 && redirect.headers["Location"] == "/app/")
                let posted = try await fixture.client.send(Request("POST", fixture.url("/app/app.js")))
                #expect(posted.status == 405 && posted.headers["Allow"] == "GET")
            }
        }
    }

    @Test func unlistedPathsAreNotFound() async throws {
        try await withFolder { path in
            try await withOnboarding(app: try AppFolder(path, gateway: Self.gateway)) { fixture in
                let paths = [
                    "missing.js", ".hidden.js", "core/.folder/a.js", "notes.md", "a%20b.js", "core", "core/",
                    "../outside.js", "%2e%2e/outside.js", "..%2Foutside.js", "core/../app.js", "core/..%2fapp.js",
                    "/app.js", "./app.js", "APP.JS", "app.js/", "app.js%00", "index.html/app.js",
                ]
                for path in paths {
                    // libcurl would normalise the path.
                    var connection = try RawConnection(port: fixture.ports[0])
                    connection.send("GET /app/\(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    let response = try connection.response(to: "GET")
                    #expect(response.status == 404, "\(path)")
                    #expect(response.values("content-type") == ["application/problem+json"], "\(path)")
                    #expect(!String(decoding: response.body, as: UTF8.self).contains("secret"), "\(path)")
                }
            }
        }
    }

    @Test func unchangedFileIsNotSentAgain() async throws {
        try await withFolder { path in
            try await withOnboarding(app: try AppFolder(path, gateway: Self.gateway)) { fixture in
                let tag = try #require(try await get("/app/app.js", of: fixture).headers["ETag"])
                for field in [tag, "W/\(tag)", "\"other\", \(tag)", "*"] {
                    let response = try await get("/app/app.js", [("If-None-Match", field)], of: fixture)
                    #expect(response.status == 304 && response.body.isEmpty, "\(field)")
                    #expect(response.headers["ETag"] == tag)
                    #expect(response.headers["Content-Security-Policy"] != nil)
                }
                // The same content has the same tag.
                let same = try await get("/app/core/time.mjs", of: fixture)
                #expect(same.headers["ETag"] == tag)
                for field in ["\"other\"", String(tag.dropLast()), try await styleTag(fixture)] {
                    let response = try await get("/app/app.js", [("If-None-Match", field)], of: fixture)
                    #expect(response.status == 200 && !response.body.isEmpty, "\(field)")
                }
            }
        }
    }

    private func styleTag(_ fixture: OnboardingFixture) async throws -> String {
        try await get("/app/app.css", of: fixture).headers["ETag"] ?? ""
    }

    @Test func compressedFileIsSentToClientsThatAcceptIt() async throws {
        var files = Self.files
        files["app.js.gz"] = "compressed"
        files["alone.js.gz"] = "secret"
        try await withFolder(files) { path in
            let app = try AppFolder(path, gateway: Self.gateway)
            #expect(app.ignored.contains("alone.js.gz"))
            try await withOnboarding(app: app) { fixture in
                let accepted = try await get("/app/app.js", [("Accept-Encoding", "br, gzip;q=0.5")], of: fixture)
                #expect(String(decoding: accepted.body, as: UTF8.self) == "compressed")
                #expect(accepted.headers["Content-Encoding"] == "gzip")
                let tag = try #require(accepted.headers["ETag"])
                for field in ["", "br", "gzip;q=0, br", "gzip; q=0.0"] {
                    let headers = [("Accept-Encoding", field), ("If-None-Match", tag)]
                    let plain = try await get("/app/app.js", headers, of: fixture)
                    #expect(plain.status == 200 && plain.headers["Content-Encoding"] == nil, "\(field)")
                    #expect(String(decoding: plain.body, as: UTF8.self) == "export {};", "\(field)")
                    #expect(plain.headers["Vary"] == "Accept-Encoding")
                }
                let unlisted = try await get("/app/app.js.gz", of: fixture)
                #expect(unlisted.status == 404)
            }
        }
    }

    @Test func appIsOffByDefault() async throws {
        #expect(Settings.appFolder.defaultText == "")
        try await withOnboarding { fixture in
            for path in ["/app", "/app/", "/app/index.html", "/app/config.json"] {
                let response = try await get(path, of: fixture)
                #expect(response.status == 404, "\(path)")
            }
        }
    }

    @Test func unusableFolderIsRejected() async throws {
        try await withFolder(["app.js": ""]) { path in
            #expect(throws: ConfigurationError.self) { try AppFolder(path, gateway: Self.gateway) }
            #expect(throws: ConfigurationError.self) { try AppFolder(path + "/none", gateway: Self.gateway) }
        }
        let many = (0...AppFolder.fileCountMax).map { ("\($0).js", "") } + [("index.html", "")]
        try await withFolder(Dictionary(uniqueKeysWithValues: many)) { path in
            #expect(throws: ConfigurationError.self) { try AppFolder(path, gateway: Self.gateway) }
        }
        let large = String(repeating: "a", count: AppFolder.bytesMax)
        try await withFolder(["index.html": "a", "large.txt": large]) { path in
            #expect(throws: ConfigurationError.self) { try AppFolder(path, gateway: Self.gateway) }
        }
    }

    /// No URL of a gateway adds a directive to the policy.
    @Test func originOfGatewayIsRestricted() {
        #expect(AppFolder.origin(of: "https://a.example") == "https://a.example")
        #expect(AppFolder.origin(of: "https://a.example/base") == "https://a.example")
        #expect(AppFolder.origin(of: "http://127.0.0.1:18080") == "http://127.0.0.1:18080")
        for url in [
            "", "a.example", "http://a.example", "ftp://a.example", "https://", "https://a.example;script-src *",
            "https://a.example,b", "https://user@a.example", "https://a.example?x", "https://*", "https://a b",
        ] {
            #expect(AppFolder.origin(of: url) == nil, "\(url)")
        }
    }
}
