import TestSupport
import Testing

@Suite(.ownThreads) struct UsageTests {
    static let cases: [([String], Int32)] = [
        (["--help"], 0), (["migrate", "--help"], 0), (["--version"], 0),
        (["nonsense"], 2), (["migrate", "--nonsense"], 2), (["migrate"], 2), (["environment", "add", "acme"], 2),
        (["environment", "invite"], 2), (["parked", "retry", "--database", "x"], 2), (["lag", "--topic", "none"], 2),
        (["topics", "apply", "--replication", "0"], 2), (["environment", "list", "--database", "host=/nowhere"], 1),
        (["topics", "apply", "--brokers", "127.0.0.1:1"], 1),
        (["migrate", "--schema", "/nowhere", "--database", "x"], 1),
    ]

    @Test(arguments: cases) func theExitStatusSaysWhoseMistakeItIs(arguments: [String], status: Int32) throws {
        let answer = try fieldpost(arguments)
        #expect(answer.status == status)
        if status == 0 { return }
        // One line, which begins with the program's name.
        #expect(answer.errors.hasPrefix("fieldpost: "))
        #expect(answer.errors.split(separator: "\n").count == 1)
        #expect(answer.output.isEmpty || answer.errors.contains("does not answer"))
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func shellsAreTaughtToComplete(shell: String) throws {
        let answer = try fieldpost("--generate-completion-script", shell)
        #expect(answer.status == 0, "\(answer.errors)")
        for part in ["doctor", "parked", "dry-run"] { #expect(answer.output.contains(part), "\(part)") }
    }

    @Test func anUnknownPropertyOfKafkaIsNamed() throws {
        let answer = try fieldpost("topics", "list", environment: ["FIELDPOST_KAFKA_NO_SUCH": "1"])
        #expect(answer.status == 1)
        #expect(answer.errors.contains("no.such"))
    }
}
