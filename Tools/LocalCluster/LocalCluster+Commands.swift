import Foundation
import HTTPClient
import Model

extension LocalCluster {
    /// Runs `body` on a new cluster, and stops the cluster afterwards. If `body` throws, diagnostics are printed.
    package static func run<Success>(
        _ name: String, _ options: Options, _ body: (LocalCluster) async throws -> Success
    ) async throws -> Success {
        let cluster = try await LocalCluster(name, options)
        do {
            let result = try await body(cluster)
            await cluster.stop()
            return result
        } catch {
            await cluster.printDiagnostics()
            await cluster.stop()
            throw error
        }
    }

    /// Prints the end of each service's log, and its health.
    package func printDiagnostics() async {
        for part in options.services {
            print("--- \(part.name)\n\(process(part)?.logTail() ?? "")")
            do {
                let url = adminURL(part) + "/health/ready"
                let response = try await client.send(Request(url, connectMax: .seconds(1), totalMax: .seconds(2)))
                print("\(response.status) \(String(decoding: response.body, as: UTF8.self))")
            } catch {
                print("health: \(error)")
            }
        }
        // The error that is printed next goes to another stream.
        fflush(nil)
    }

    // MARK: Commands

    /// The folder of the executables: the one of the program that runs, or of the test bundle.
    package static var executables: String {
        let arguments = CommandLine.arguments
        if let bundle = arguments.first(where: { $0.hasSuffix(".xctest") }) {
            return URL(fileURLWithPath: bundle).deletingLastPathComponent().path
        }
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: program ?? arguments.first ?? "").deletingLastPathComponent().path
    }

    /// The schema files of the sources this was built from.
    package static var schemaFolder: String { sourceFolder("deploy/schema") }

    /// Returns the path of a folder of the sources this was built from.
    static func sourceFolder(_ path: String) -> String {
        let sources = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return sources.appendingPathComponent(path).path
    }

    /// Starts `fieldpost`, `workbench` or another program with the cluster's settings.
    ///
    /// - Parameters:
    ///   - log: The name of its log; `nil`: its output is this process's.
    ///   - executables: The folder of the program; the cluster's unless given.
    ///   - variables: Additional environment variables.
    package func startCommand(
        _ arguments: [String], of program: String = "fieldpost", log: String?, from executables: String? = nil,
        variables: [String: String] = [:]
    ) throws -> ClusterProcess {
        try ClusterProcess(
            ClusterProcess.Command(
                executable: (executables ?? options.executables) + "/" + program, arguments: arguments,
                environment: common.merging(variables) { $1 },
                logPath: log.map { folder.logPath($0) }))
    }

    /// Runs `fieldpost`, and returns its output. Cancelling the task ends it.
    ///
    /// - Parameters:
    ///   - log: The name of its log; one of its own unless given.
    ///   - executables: The folder of its build; the cluster's unless given.
    ///   - variables: Additional environment variables.
    /// - Throws: `ClusterFailure` unless it ends with status 0.
    @discardableResult
    package func runCommand(
        _ arguments: [String], log: String? = nil, within: Duration = .seconds(240), from executables: String? = nil,
        variables: [String: String] = [:]
    ) async throws -> String {
        let process = try startCommand(
            arguments, log: log ?? "fieldpost-\(UUID().uuidString)", from: executables, variables: variables)
        let end = await withTaskCancellationHandler {
            await onOwnThread { process.waitForEnd(within: within) }
        } onCancel: {
            process.signal(SIGTERM)
        }
        guard end == .exited(status: 0) else {
            process.kill9()
            throw ClusterFailure("fieldpost \(arguments.joined(separator: " ")): \(process.logTail())")
        }
        return process.logTail(bytesMax: 1_000_000)
    }

    /// Starts `workbench demo` on the cluster.
    ///
    /// - Parameter log: The name of its log; `nil`: its output is this process's.
    package func startDemo(
        _ options: [String], log: String? = "demo", hasCompass: Bool = false
    ) throws -> ClusterProcess {
        let addresses = [
            "--gateway", gatewayURL, "--identity", identityURL, "--sap", sapURL, "--database", conninfo,
        ]
        let compass = hasCompass ? ["--compass", compassURL] : []
        return try startCommand(["demo"] + addresses + compass + options, of: "workbench", log: log)
    }

    /// A difference that `fieldpost check` reports.
    package struct Difference: Decodable, Sendable, CustomStringConvertible {
        package let environment: String
        package let part: String
        package let key: String
        package let fault: String
        package let pending: String?

        private enum CodingKeys: String, CodingKey {
            case environment, key, fault, pending
            case part = "check"
        }

        package var description: String {
            "\(environment): \(part): \(key): \(fault)" + (pending.map { " (may be in flight: \($0))" } ?? "")
        }
    }

    /// Runs `fieldpost check` and returns the differences that it reports.
    ///
    /// - Parameter settle: The maximum time to wait for changes in flight, when something differs at the first scan.
    /// - Throws: `ClusterFailure` when the check itself fails.
    package func differences(settle: Duration = .seconds(90)) async throws -> [Difference] {
        struct Outcome: Decodable { let inconsistencies: [Difference] }
        let arguments = ["check", "--json", "--settle", "\(settle.components.seconds)"]
        let process = try startCommand(arguments, log: "check-\(UUID().uuidString)")
        let end = await onOwnThread { process.waitForEnd(within: settle + .seconds(240)) }
        let text = process.logTail(bytesMax: 10_000_000)
        guard let outcome = try? JSONDecoder().decode(Outcome.self, from: Data(text.utf8)) else {
            process.kill9()
            throw ClusterFailure("fieldpost check failed (\(end.map { "\($0)" } ?? "timeout")): \(text.suffix(4_000))")
        }
        return outcome.inconsistencies
    }

    // MARK: Parts

    /// The command of a part other than the database.
    func command(_ part: Part, of executables: String) -> ClusterProcess.Command {
        let program = part.service?.name ?? "sandbox"
        let command = ClusterProcess.Command(
            executable: "\(executables)/\(program)", arguments: arguments(part), environment: variables(part),
            logPath: folder.logPath(part.name))
        return home.network?.command(command, on: part.name) ?? command
    }

    private func arguments(_ part: Part) -> [String] {
        guard part.service == nil else { return [] }
        let own: [String] =
            switch part {
            case .identity:
                [
                    "--key-file", folder.path + "/identity-keys", "--client",
                    "\(Self.clientID),\(home.clientSecret),\(onboardingURL)/auth_callback",
                    "--client", "\(Self.consoleClientID),\(home.clientSecret),\(consoleURL)/callback",
                ]
            case .sap, .economic, .compass: ["--state", "\(folder.path)/\(part.name).journal"]
            default: []
            }
        let port = home.ports[part].map { ["--port", "\($0)"] } ?? []
        let host = home.network.map { ["--host", $0.address(part.name)] } ?? []
        return [part.name] + own + host + port + (options.arguments[part] ?? [])
    }

    private func variables(_ part: Part) -> [String: String] {
        var variables = common
        guard let service = part.service else { return variables }
        variables["FIELDPOST_ADMIN_PORT"] = home.adminPorts[part].map { "\($0)" }
        variables["FIELDPOST_HTTP_PORT"] = home.ports[part].map { "\($0)" }
        if home.network != nil {
            variables["FIELDPOST_ADMIN_HOST"] = home.host(part)
            variables["FIELDPOST_HTTP_HOST"] = home.ports[part].map { _ in home.host(part) }
        }
        variables.merge(service.localSettings.mapValues(home.text)) { $1 }
        if options.showcases.contains(part.first) {
            variables.merge(service.showcaseSettings.mapValues(home.text)) { $1 }
        }
        if service == Services.lagMonitor, options.hasConsole { variables.merge(console) { $1 } }
        return variables.merging(options.variables[part.first] ?? [:]) { $1 }
            .merging(options.variables[part] ?? [:]) { $1 }
    }

    /// The console's settings, with the addresses of all services.
    private var console: [String: String] {
        let services = options.services.filter { $0.service != nil }.map { "\($0.name)=\(adminURL($0))" }
        return [
            "FIELDPOST_CONSOLE_URL": consoleURL, "FIELDPOST_CONSOLE_PORT": "\(home.consolePort)",
            "FIELDPOST_CONSOLE_ISSUER": identityURL, "FIELDPOST_CONSOLE_CLIENT_ID": Self.consoleClientID,
            "FIELDPOST_CONSOLE_CLIENT_SECRET": home.clientSecret,
            "FIELDPOST_CONSOLE_ADMINISTRATORS": Self.consoleAdministrator,
            "FIELDPOST_CONSOLE_SERVICES": services.joined(separator: ","),
        ]
    }

    private var common: [String: String] {
        home.inherited.merging([
            "TMPDIR": FileManager.default.temporaryDirectory.path, ClusterFolder.mark: folder.markValue,
        ]) { $1 }.merging(home.settings(conninfo: conninfo)) { $1 }
    }
}
