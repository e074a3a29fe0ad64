import TestSupport
import Testing

@Suite(.ownThreads) struct UsageTests {
    static let cases: [([String], Int32)] = [
        (["--help"], 0), (["migrate", "--help"], 0), (["--version"], 0),
        (["nonsense"], 2), (["migrate", "--nonsense"], 2), (["migrate"], 2), (["environment", "add", "acme"], 2),
        (["environment", "invite"], 2), (["deferred", "retry", "--database", "x"], 2), (["lag", "--topic", "none"], 2),
        (["schema", "generate", "powersync"], 2),
        (["topics", "apply", "--replication", "0"], 2), (["environment", "list", "--database", "host=/nowhere"], 1),
        (["topics", "apply", "--brokers", "127.0.0.1:1"], 1),
        (["migrate", "--schema", "/nowhere", "--database", "x"], 1),
    ]

    @Test(arguments: cases) func exitStatusDistinguishesUsageErrors(arguments: [String], status: Int32) throws {
        let result = try fieldpost(arguments)
        #expect(result.status == status)
        if status == 0 { return }
        // One line that begins with the program's name.
        #expect(result.errors.hasPrefix("fieldpost: "))
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(result.output.isEmpty || result.errors.contains("does not respond"))
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func completionScriptHasCommands(shell: String) throws {
        let result = try fieldpost("--generate-completion-script", shell)
        #expect(result.status == 0, "\(result.errors)")
        for part in ["doctor", "deferred", "dry-run"] { #expect(result.output.contains(part), "\(part)") }
    }

    @Test func unknownKafkaPropertyIsRejected() throws {
        let result = try fieldpost("topics", "list", environment: ["FIELDPOST_KAFKA_NO_SUCH": "1"])
        #expect(result.status == 1)
        #expect(result.errors.contains("no.such"))
    }
}
