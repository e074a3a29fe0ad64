import FoundationEssentials
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

@Suite(.ownThreads) struct ConfigurationTests {
    static let settings: [Setting] = [
        .databaseURL, .kafkaBrokers, .kafkaProperties, .workerCount, .logLevel,
        Setting("wait.max", .duration(.milliseconds(10) ... .seconds(60)), default: "5s", help: "a wait"),
        Setting("dry.run", .flag, default: "false", help: "a flag"),
        Setting("host.names", .list(countMax: 3), default: "", help: "a list"),
        Setting(
            "api.password", .choice(["secret-a", "secret-b"]), default: "secret-a", isSecret: true, help: "a secret"),
    ]

    static let errors: [([String: String], String)] = [
        ([:], "FIELDPOST_DATABASE_URL is not set: PostgreSQL connection string"),
        (["WORKER_COUNT": "many"], "FIELDPOST_WORKER_COUNT is \"many\": expected an integer from 1 to 64"),
        (["WORKER_COUNT": "65"], "FIELDPOST_WORKER_COUNT is \"65\": expected an integer from 1 to 64"),
        (["WAIT_MAX": "5"], "FIELDPOST_WAIT_MAX is \"5\": expected a duration from 10ms to 1m, such as 30s"),
        (["WAIT_MAX": "2m"], "FIELDPOST_WAIT_MAX is \"2m\": expected a duration from 10ms to 1m"),
        (["WAIT_MAX": "9999999999999999d"], "FIELDPOST_WAIT_MAX is"),
        (["DRY_RUN": "maybe"], "FIELDPOST_DRY_RUN is \"maybe\": expected true or false"),
        (["HOST_NAMES": "a,b,c,d"], "FIELDPOST_HOST_NAMES is \"a,b,c,d\": expected at most 3 texts"),
        (["LOG_LEVEL": "lo\nud"], "FIELDPOST_LOG_LEVEL is \"lo?ud\": expected one of trace"),
        (["API_PASSWORD": "hunter2"], "FIELDPOST_API_PASSWORD is <redacted>: expected one of"),
        (
            ["WORKER_COUNTS": "1"],
            "FIELDPOST_WORKER_COUNTS is not a setting of this program; did you mean FIELDPOST_WORKER_COUNT?"
        ),
        (["SOMETHING_ELSE_ENTIRELY": "1"], "FIELDPOST_SOMETHING_ELSE_ENTIRELY is not a setting of this program"),
    ]

    @Test(arguments: errors) func invalidSettingIsNamedInOneLine(given: [String: String], line: String) throws {
        var environment = Dictionary(uniqueKeysWithValues: given.map { ("FIELDPOST_" + $0.key, $0.value) })
        if !given.isEmpty { environment["FIELDPOST_DATABASE_URL"] = "postgresql://" }
        let error = #expect(throws: ConfigurationError.self) {
            try Configuration(Self.settings, environment: environment)
        }
        let description = try #require(error).description
        #expect(description.hasPrefix(line))
        #expect(!description.contains("\n") && !description.contains("hunter2"))
    }

    @Test func environmentOverridesFileAndFileOverridesDefaults() throws {
        let path = try file(
            #"{"database": {"url": "from file"}, "worker.count": 7, "kafka": {"security.protocol": "SSL"}, "dry": {"run": true}, "host.names": ["a", "b"]}"#
        )
        defer { try? FileManager.default.removeItem(atPath: path) }
        let configuration = try Configuration(
            Self.settings,
            environment: [
                "FIELDPOST_WORKER_COUNT": "9", "FIELDPOST_KAFKA_CLIENT_RACK": "r1", "FIELDPOST_ADMIN_PORT": "0",
                "PATH": "/",
            ], file: path)
        #expect(try configuration.text(.databaseURL) == "from file")
        #expect(try configuration.integer(.workerCount) == 9)
        #expect(try configuration.text(.kafkaBrokers) == "127.0.0.1:9092")
        #expect(try configuration.duration(Self.settings[5]) == .seconds(5))
        #expect(try configuration.flag(Self.settings[6]))
        #expect(try configuration.list(Self.settings[7]) == ["a", "b"])
        let properties = try configuration.properties(under: "kafka.") { _, _ in nil }
        #expect(properties == ["security.protocol": "SSL", "client.rack": "r1"])
        let printed = Usage.effective(configuration)
        #expect(printed.contains("worker.count            = 9  (environment)"))
        #expect(!printed.contains("from file  ") && printed.contains("<redacted>  (file \(path))"))
    }

    @Test func rejectedPropertyIsNamedAsConfigured() throws {
        let path = try file(#"{"database.url": "x", "kafka": {"a.b": "1"}}"#)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let configuration = try Configuration(
            Self.settings,
            environment: ["FIELDPOST_KAFKA_NO_SUCH": "lo\nud", "FIELDPOST_KAFKA_SASL_PASSWORD": "hunter2"],
            file: path)
        for (name, line) in [
            ("a.b", "a.b in \(path) is \"1\": wrong"), ("no.such", "FIELDPOST_KAFKA_NO_SUCH is \"lo?ud\": wrong"),
            ("sasl.password", "FIELDPOST_KAFKA_SASL_PASSWORD is <redacted>: wrong"),
        ] {
            let error = #expect(throws: ConfigurationError.self) {
                try configuration.properties(under: "kafka.") { property, _ in property == name ? "wrong" : nil }
            }
            #expect(error?.description.hasSuffix(line) == true)
        }
    }

    @Test(arguments: [
        (#"{"worker": {"count": 0}}"#, "worker.count in"), (#"{"worker": {"cuont": 1}}"#, "did you mean worker.count?"),
        ("[1]", "must contain one JSON object"), ("{", "is not valid JSON"), (#"{"worker.count": null}"#, "is null"),
        (#"{"a": [{}]}"#, "must be a list of texts"),
        (#"{"log.level": "info", "log": {"level": "info"}}"#, "occurs twice"),
    ])
    func invalidFileIsNamedInError(json: String, part: String) throws {
        let path = try file(json)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let error = #expect(throws: ConfigurationError.self) {
            try Configuration(Self.settings, environment: ["FIELDPOST_DATABASE_URL": "x", "FIELDPOST_CONFIG": path])
        }
        #expect(try #require(error).description.contains(part))
    }

    @Test(arguments: ["1ms", "500ms", "30s", "90s", "5m", "2h", "7d"]) func durationsRoundTrip(text: String) {
        #expect(Duration(settingText: text)?.settingText == text)
    }

    private func file(_ json: String) throws -> String {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).json"
        try Data(json.utf8).write(to: URL(filePath: path))
        return path
    }
}
