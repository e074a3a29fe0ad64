import Foundation

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

    /// `FIELDPOST_SCHEMA`, else the schema files of the sources this was built from.
    package static var schemaFolder: String {
        if let folder = ProcessInfo.processInfo.environment["FIELDPOST_SCHEMA"] { return folder }
        let sources = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return sources.appendingPathComponent("deploy/schema").path
    }

    /// Starts a command line, `fieldpost` or `workbench`, with the cluster's settings.
    package func startCommand(
        _ arguments: [String], of program: String = "fieldpost", log: String
    ) throws -> ClusterProcess {
        try ClusterProcess(
            ClusterProcess.Command(
                executable: Self.executables + "/" + program, arguments: arguments,
                environment: common.merging(["FIELDPOST_KAFKA_BROKERS": brokers]) { $1 },
                logPath: "\(folder.path)/\(log).log"))
    }

    /// Runs a command line, `fieldpost` or `workbench`, and gives what it said.
    ///
    /// - Throws: `ClusterFailure` unless it ends with status 0.
    @discardableResult
    package func runCommand(
        _ arguments: [String], of program: String = "fieldpost", within: Duration = .seconds(240)
    ) async throws -> String {
        let process = try startCommand(arguments, of: program, log: "\(program)-\(UUID().uuidString)")
        let end = await withOwnThread { process.waitForEnd(within: within) }
        guard end == .exited(status: 0) else {
            process.kill9()
            throw ClusterFailure("\(program) \(arguments.joined(separator: " ")): \(process.logTail())")
        }
        return process.logTail(bytesMax: 1_000_000)
    }

    /// How a part is run. The database is no such part.
    func command(_ part: Part) -> ClusterProcess.Command {
        let port = ports[part].map { ["--port", "\($0)"] } ?? []
        let client = "\(Self.clientID),\(Self.clientSecret),\(onboardingURL)/auth_callback"
        let (program, arguments): (String, [String]) =
            switch part {
            case .broker: ("sandbox", ["broker"] + port)
            case .identity:
                ("sandbox", ["identity", "--key-file", folder.path + "/identity.keys", "--client", client] + port)
            case .sap: ("sandbox", ["sap", "--state", folder.path + "/sap.journal"] + port)
            case .economic:
                ("sandbox", ["economic", "--state", folder.path + "/economic.journal"] + port)
            case .database, .relay, .gateway, .initializer, .submitter, .poller, .onboarding, .relayTwo, .gatewayTwo,
                .initializerTwo, .submitterTwo, .pollerTwo, .onboardingTwo:
                (part.first.rawValue, [])
            }
        return ClusterProcess.Command(
            executable: "\(Self.executables)/\(program)", arguments: arguments, environment: variables(part),
            logPath: "\(folder.path)/\(part.rawValue).log")
    }

    private func variables(_ part: Part) -> [String: String] {
        var variables = common
        variables["FIELDPOST_KAFKA_BROKERS"] = brokers
        variables["FIELDPOST_ADMIN_PORT"] = adminPorts[part].map { "\($0)" }
        switch part.first {
        case .gateway: variables["FIELDPOST_HTTP_PORT"] = ports[part].map { "\($0)" }
        case .onboarding:
            variables["FIELDPOST_HTTP_PORT"] = ports[part].map { "\($0)" }
            variables["FIELDPOST_ONBOARDING_URL"] = onboardingURL
            if options.deviceHasPage {
                variables["FIELDPOST_ONBOARDING_DEVICE_PAGE"] = "true"
                variables["FIELDPOST_ONBOARDING_DEVICE_GATEWAY"] = gatewayURL
            }
        default: break
        }
        return variables.merging(options.variables[part.first] ?? [:]) { $1 }
    }

    private var common: [String: String] {
        [
            "PATH": "/usr/bin:/bin", "TMPDIR": FileManager.default.temporaryDirectory.path,
            ClusterFolder.mark: folder.path, "FIELDPOST_DATABASE_URL": conninfo,
            Self.passwordVariable: Self.passwordOfSAP, Self.tokensVariable: Self.tokensOfEconomic,
            Self.clientSecretVariable: Self.clientSecret,
            "FIELDPOST_SECRET_KEYS": Data((0..<32).map { UInt8($0) }).base64EncodedString(),
        ]
    }
}
