import FoundationEssentials
import Glibc
import LocalCluster
import Model
import Postgres
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings

/// A built service, run like by its users.
private struct Executable: ~Copyable {
    let process: pid_t
    private let output: Int32

    init(_ name: String, _ arguments: [String] = [], environment: [String: String]) throws {
        var ends: [Int32] = [0, 0]
        try #require(unsafe pipe(&ends) == 0)
        let binary = try #require(Self.directory) + "/" + name
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
        var argv = unsafe ([binary] + arguments).map { unsafe strdup($0) } + [nil]
        var envp = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        var process = pid_t()
        let status = unsafe posix_spawn(&process, binary, &actions, nil, &argv, &envp)
        unsafe argv.forEach { unsafe free($0) }
        unsafe envp.forEach { unsafe free($0) }
        unsafe posix_spawn_file_actions_destroy(&actions)
        close(ends[1])
        try #require(status == 0, "cannot run \(binary)")
        self.process = process
        self.output = ends[0]
    }

    deinit {
        kill(process, SIGKILL)
        close(output)
    }

    /// The executables are in the folder of the test bundle.
    private static var directory: String? {
        let arguments = CommandLine.arguments
        let bundle = arguments.first { $0.hasSuffix(".xctest") } ?? arguments.first
        return bundle.map { URL(filePath: $0).deletingLastPathComponent().path }
    }

    /// Reads the output up to `text`, or to the end. Kills the process after a timeout.
    func read(until text: String? = nil) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            var ready = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&ready, 1, 60_000) == 0 { kill(process, SIGKILL) }
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe Glibc.read(output, $0.baseAddress, $0.count) }
            if count > 0 { bytes += chunk[..<count] }
            let all = String(decoding: bytes, as: UTF8.self)
            if count <= 0 || text.map({ all.contains($0) }) == true { return all }
        }
    }

    /// Returns the exit status; 128 plus the number of a signal, as in a shell.
    func wait() -> Int32 {
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    }
}

@Suite(.ownThreads) struct ExecutableTests {
    static let cases: [([String], [String: String], Int32, String)] = [
        (["--help"], [:], 0, "FIELDPOST_DATABASE_URL\n"),
        (["--version"], [:], 0, "change-relay \(fieldpostVersion)\n"),
        (["--print-config"], ["FIELDPOST_DATABASE_URL": "hunter2"], 0, " = <redacted>  (environment)"),
        (["--print-settings"], [:], 0, "\"variable\" : \"FIELDPOST_RELAY_PAGE\""),
        (["--nonsense"], [:], 2, "change-relay: unknown argument --nonsense; "),
        (["--config"], [:], 2, "change-relay: --config requires a file\n"),
        (["--config", "/nonexistent"], [:], 1, "change-relay: cannot read the configuration file /nonexistent\n"),
        ([], [:], 1, "change-relay: FIELDPOST_DATABASE_URL is not set: "),
        (
            [], ["FIELDPOST_DATABASE_URL": "hunter2", "FIELDPOST_LOG_LEVEL": "loud"], 1,
            "FIELDPOST_LOG_LEVEL is \"loud\""
        ),
        (
            [], ["FIELDPOST_DATABASE_URL": "hunter2", "FIELDPOST_LOG_LEVL": "info"], 1,
            "did you mean FIELDPOST_LOG_LEVEL?\n"
        ),
        (
            [], ["FIELDPOST_DATABASE_URL": "hunter2", "FIELDPOST_ADMIN_HOST": "192.0.2.1"], 1,
            "cannot listen on 192.0.2.1:0"
        ),
    ]

    @Test(arguments: 0..<cases.count) func printsAndExits(index: Int) async throws {
        let (arguments, environment, status, part) = Self.cases[index]
        let (output, exit) = try await run("change-relay", arguments, environment: environment)
        #expect(exit == status)
        #expect(output.contains(part))
        #expect(!output.contains("hunter2") && !output.contains("Fatal error"))
        let lines = output.split(separator: "\n")
        // Before logging is set up, a failure is one line; afterwards every line is a log line.
        if status != 0 { #expect(lines.count == 1 || lines.allSatisfy { $0.hasPrefix("{") }) }
    }

    @Test(arguments: Services.all.map(\.name)) func everyServicePrintsItsVersion(service: String) async throws {
        let (output, exit) = try await run(service, ["--version"], environment: [:])
        #expect(exit == 0)
        #expect(output == "\(service) \(fieldpostVersion)\n")
    }

    static let kafkaServices = Services.needing(.kafka).map(\.name)

    @Test(arguments: kafkaServices, [("NO_SUCH", "1", "no.such"), ("FETCH_MIN_BYTES", "few", "fetch.min.bytes")])
    func rejectedKafkaPropertyIsReportedInOneLine(service: String, property: (String, String, String)) async throws {
        let (variable, value, name) = property
        let (output, exit) = try await run(
            service, environment: ["FIELDPOST_DATABASE_URL": "x", "FIELDPOST_KAFKA_" + variable: value])
        #expect(exit == 1)
        #expect(output.split(separator: "\n").count == 1)
        #expect(output.hasPrefix("\(service): FIELDPOST_KAFKA_\(variable) is \"\(value)\": "), "\(output)")
        #expect(output.contains(name))
    }

    /// Each setting is valid on its own, but librdkafka rejects the combination.
    @Test(arguments: kafkaServices) func rejectedKafkaConfigurationStopsService(service: String) async throws {
        let variables = [
            "FIELDPOST_DATABASE_URL": try makeFoundationDatabase(),
            "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "FIELDPOST_KAFKA_SASL_MECHANISMS": "NOSUCH",
        ]
        let (output, exit) = try await run(service, environment: variables)
        #expect(exit == 1)
        #expect(
            output.contains("NOSUCH") && output.contains("\"message\":\"component failed, process stopped\""),
            "\(output)")
    }

    @Test(arguments: kafkaServices, [true, false]) func unsupportedSchemaStopsService(
        service: String, isNewer: Bool
    ) async throws {
        let database = isNewer ? try makeFoundationDatabase() : try TestServer.shared.makeDatabase()
        if isNewer {
            var connection = try Connection(database)
            try connection.run("INSERT INTO realm.migration (number, name, checksum) VALUES (9999, 'later', '')")
        }
        let (output, exit) = try await run(
            service, environment: ["FIELDPOST_DATABASE_URL": database, "FIELDPOST_KAFKA_BROKERS": "127.0.0.1:1"])
        #expect(exit == 1)
        #expect(output.contains("the database has schema \(isNewer ? 9999 : 0), this program"), "\(output)")
        #expect(output.contains("\"message\":\"component failed, process stopped\""))
    }

    /// - Returns: The complete output and the exit status.
    private func run(
        _ name: String, _ arguments: [String] = [], environment: [String: String]
    ) async throws -> (String, Int32) {
        try await onThread(named: "executable") {
            Result {
                let executable = try Executable(name, arguments, environment: environment)
                return (executable.read(), executable.wait())
            }
        }.get()
    }

    @Test func serviceStopsCleanlyOnSignal() async throws {
        let (start, end, exit) = try await onThread(named: "executable") {
            Result {
                let executable = try Executable("change-relay", environment: ["FIELDPOST_DATABASE_URL": "x"])
                let start = executable.read(until: "server listening")
                kill(executable.process, SIGTERM)
                return (start, executable.read(), executable.wait())
            }
        }.get()
        #expect(start.contains("server listening"))
        #expect(end.contains("\"message\":\"stopped\""))
        #expect(exit == 0)
    }

    @Test(arguments: ["sap", "economic", "compass"]) func emulatorStopsCleanlyOnSignal(name: String) async throws {
        let (start, exit) = try await onThread(named: "executable") {
            Result {
                let executable = try Executable("sandbox", [name, "--port", "0"], environment: [:])
                let start = executable.read(until: "listens on 127.0.0.1:")
                kill(executable.process, SIGTERM)
                _ = executable.read()
                return (start, executable.wait())
            }
        }.get()
        #expect(start.contains("sandbox \(name) listens on"))
        #expect(exit == 0)
    }
}
