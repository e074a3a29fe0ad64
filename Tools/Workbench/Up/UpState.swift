import Foundation
import LocalCluster
import Model

/// `.fieldpost`: what is kept between runs.
struct UpState: Sendable {
    let path: String
    let ports: UpPorts
    let home: ClusterHome
    /// Of the user that owns the database.
    private let password: String

    /// Opens it, and makes what is missing.
    ///
    /// - Throws: `ClusterFailure` when another one has it.
    init(folder path: String) throws {
        self.path = path
        let folder = try ClusterFolder(lasting: path)
        let stored = (try? String(contentsOfFile: path + "/ports", encoding: .utf8)) ?? ""
        ports = UpPorts(stored, preferred: UpPorts.preferred, take: Ports.take)
        try Data(ports.text.utf8).write(to: URL(fileURLWithPath: path + "/ports"))
        var home = ClusterHome(folder, ports)
        password = try Self.secret(path + "/password", byteCount: 18) {
            $0.replacing("+", with: "x").replacing("/", with: "y")
        }
        home.secretKeys = try Self.secret(path + "/secret-key", byteCount: 32)
        home.clientSecret = try Self.secret(path + "/client-secret", byteCount: 32)
        home.inherited = Self.inherited(from: ProcessInfo.processInfo.environment)
        self.home = home
    }

    /// Of the variables of this process, those that its children get. Settings of another installation
    /// (`FIELDPOST_…`, `PG…`, `http_proxy`) are not among them.
    static func inherited(from variables: [String: String]) -> [String: String] {
        let names: Set = [
            "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "NO_COLOR", "SWIFT_BACKTRACE", "CLUSTER_KEEP",
        ]
        return variables.filter { names.contains($0.key) }
    }

    /// Blocks until PostgreSQL is ready, with the database.
    ///
    /// - Parameter willCreate: Called with the path of its files before they are created.
    func startDatabase(willCreate: (String) -> Void) throws -> (server: ClusterServer, conninfo: String) {
        let folder = try databaseFolder()
        if !FileManager.default.fileExists(atPath: folder + "/data") { willCreate(folder) }
        let server = try ClusterServer(lasting: folder, in: home.folder, port: ports["postgres"], password: password)
        try server.start()
        return (server, try server.makeDatabase("fieldpost"))
    }

    /// PostgreSQL's user may have no access to `.fieldpost`, for example below `/root`.
    private func databaseFolder() throws -> String {
        if getuid() != 0 || ClusterServer.canEnter(path) { return path + "/postgres" }
        let sum = try runToEnd("sh", ["-c", "printf %s \"$0\" | cksum", path]).prefix { $0 != " " }
        return "/var/lib/fieldpost/\(sum)"
    }

    /// Writes the file that a shell is to source.
    ///
    /// - Parameter executables: The folder of the executables.
    func writeEnvironment(executables: String) throws {
        let server = "\(ClusterServer.user):\(password)@127.0.0.1:\(ports["postgres"])"
        let settings = home.settings(conninfo: "postgresql://\(server)/fieldpost")
        var variables = settings.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        variables += addresses.map { ($0.variable, $0.url) }
        let lines = variables.map { "export \($0.0)='\($0.1)'" } + ["export PATH=\"\(executables):$PATH\"", ""]
        let text = "# Made by deploy/up: source it to use fieldpost, psql and kcat on what it runs.\n"
        let new = path + "/environment.new"
        try? FileManager.default.removeItem(atPath: new)
        _ = FileManager.default.createFile(
            atPath: new, contents: Data((text + lines.joined(separator: "\n")).utf8),
            attributes: [.posixPermissions: 0o600])
        guard unsafe rename(new, path + "/environment") == 0 else {
            throw ClusterFailure("\(path)/environment cannot be written (errno \(errno))")
        }
    }

    /// The addresses of services' endpoints and emulators, with their titles, variables, and the page about them.
    var addresses: [(title: String, variable: String, url: String, page: String)] {
        let emulators: [(title: String, variable: String, part: LocalCluster.Part)] = [
            ("identity provider", "IDENTITY_URL", .identity), ("SAP emulator", "SAP_URL", .sap),
            ("e-conomic emulator", "ECONOMIC_URL", .economic), ("Compass emulator", "COMPASS_URL", .compass),
        ]
        return Services.all.compactMap { service in
            service.endpoint.map {
                let page = service.name == Services.onboarding.name ? "operators/onboarding" : "apps/tutorial"
                return ($0.title, $0.variable, home.url(LocalCluster.Part(service)), "docs/\(page).md")
            }
        } + emulators.map { ($0.title, $0.variable, home.url($0.part), "docs/operators/sandbox.md") }
    }

    /// A random text that is made once and kept in a file for its owner alone.
    private static func secret(_ path: String, byteCount: Int, change: (String) -> String = { $0 }) throws -> String {
        if let text = try? String(contentsOfFile: path, encoding: .utf8) {
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let text = change(Data((0..<byteCount).map { _ in UInt8.random(in: 0...255) }).base64EncodedString())
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        else { throw ClusterFailure("\(path) cannot be written (errno \(errno))") }
        return text
    }
}
