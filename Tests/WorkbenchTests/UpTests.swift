import Model
import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct UpCommandTests {
    static let environments: [([String], String)] = [
        ([], "demo"), (["--entra"], "demo-entra"), (["--data", "x"], "tock"), (["--data=x", "--entra"], "tock-entra"),
        (["--data", "x", "--environment", "mine"], "mine"), (["--environment=mine", "--entra"], "mine"),
    ]

    @Test(arguments: environments) func theEnvironmentIsTheDemos(options: [String], name: String) {
        #expect(UpCommand.environment(ofDemo: options) == name)
    }
}

@Suite(.ownThreads) struct UpStateTests {
    /// Variables that are exported for another installation are not passed on.
    @Test func settingsOfOtherInstallationsAreNotInherited() {
        let mine = ["PATH": "/usr/bin", "HOME": "/root", "LANG": "C.UTF-8"]
        let others = [
            "FIELDPOST_SCHEMA": "/old", "FIELDPOST_CONFIG": "/etc/fieldpost",
            "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "ssl",
            "PGHOST": "elsewhere", "PGOPTIONS": "-c statement_timeout=1", "http_proxy": "http://proxy.example",
            "IDENTITY_URL": "https://elsewhere.example",
        ]
        #expect(UpState.inherited(from: mine.merging(others) { $1 }) == mine)
    }
}

@Suite(.ownThreads) struct UpPortsTests {
    private static let preferred = [(name: "broker", port: 19_092), (name: "gateway", port: 18_080)]

    private static func ports(_ stored: String, open: Set<Int> = []) -> UpPorts {
        UpPorts(stored, preferred: preferred) { !open.contains($0) }
    }

    @Test func freePortsAreClaimedAndStored() {
        let ports = Self.ports("", open: [18_080, 18_180])
        #expect(ports.text == "broker=19092\ngateway=18280\n")
        #expect(ports.moved.isEmpty)
        #expect(Self.ports(ports.text) == ports)
    }

    @Test func portTakenByAnotherProcessIsReplaced() {
        let ports = Self.ports("broker=19092\ngateway=18080\n", open: [18_080])
        #expect(ports["gateway"] == 18_180)
        #expect(ports.moved == ["gateway": 18_080])
    }

    @Test func twoNamesHaveTwoPorts() {
        let ports = Self.ports("another=18080\ngateway=19092\n")
        #expect(ports.text == "another=18080\nbroker=19192\ngateway=19092\n")
    }

    @Test func everythingHasAPort() {
        let names = UpPorts.preferred.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.count > Services.all.count + 5)
    }
}
