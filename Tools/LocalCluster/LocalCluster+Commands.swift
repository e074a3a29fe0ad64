import Foundation
import Model

extension LocalCluster {
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
    package static var schemaFolder: String {
        let sources = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return sources.appendingPathComponent("deploy/schema").path
    }

    /// Starts `fieldpost` or `workbench` with the cluster's settings.
    ///
    /// - Parameters:
    ///   - log: The name of its log; `nil`: its output is this process's.
    ///   - executables: The folder of its build; the cluster's unless given.
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

    /// Starts a shell script with the cluster's settings; `FIELDPOST` is the path of `fieldpost`.
    ///
    /// - Parameters:
    ///   - variables: Additional environment variables.
    ///   - log: The name of its log.
    package func startScript(
        _ script: String, with variables: [String: String], log: String
    ) throws -> ClusterProcess {
        let own = ["FIELDPOST": options.executables + "/fieldpost"].merging(variables) { $1 }
        return try ClusterProcess(
            ClusterProcess.Command(
                executable: "/bin/sh", arguments: ["-c", script], environment: common.merging(own) { $1 },
                logPath: folder.logPath(log)))
    }

    /// Runs `fieldpost` or `workbench`, and returns its output. Cancelling the task ends it.
    ///
    /// - Parameters:
    ///   - log: The name of its log; one of its own unless given.
    ///   - executables: The folder of its build; the cluster's unless given.
    ///   - variables: Additional environment variables.
    /// - Throws: `ClusterFailure` unless it ends with status 0.
    @discardableResult
    package func runCommand(
        _ arguments: [String], of program: String = "fieldpost", log: String? = nil, within: Duration = .seconds(240),
        from executables: String? = nil, variables: [String: String] = [:]
    ) async throws -> String {
        let process = try startCommand(
            arguments, of: program, log: log ?? "\(program)-\(UUID().uuidString)", from: executables,
            variables: variables)
        let end = await withTaskCancellationHandler {
            await onOwnThread { process.waitForEnd(within: within) }
        } onCancel: {
            process.signal(SIGTERM)
        }
        guard end == .exited(status: 0) else {
            process.kill9()
            throw ClusterFailure("\(program) \(arguments.joined(separator: " ")): \(process.logTail())")
        }
        return process.logTail(bytesMax: 1_000_000)
    }

    /// The command of a part other than the database.
    func command(_ part: Part, of executables: String) -> ClusterProcess.Command {
        let program = part.service?.name ?? "sandbox"
        return ClusterProcess.Command(
            executable: "\(executables)/\(program)", arguments: arguments(part), environment: variables(part),
            logPath: folder.logPath(part.name))
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
        return [part.name] + own + port + (options.arguments[part] ?? [])
    }

    private func variables(_ part: Part) -> [String: String] {
        var variables = common
        guard let service = part.service else { return variables }
        variables["FIELDPOST_ADMIN_PORT"] = home.adminPorts[part].map { "\($0)" }
        variables["FIELDPOST_HTTP_PORT"] = home.ports[part].map { "\($0)" }
        variables.merge(service.localSettings.mapValues(home.text)) { $1 }
        if options.showcases.contains(part.first) {
            variables.merge(service.showcaseSettings.mapValues(home.text)) { $1 }
        }
        if service == Services.lagMonitor, options.hasConsole { variables.merge(console) { $1 } }
        return variables.merging(options.variables[part.first] ?? [:]) { $1 }
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
