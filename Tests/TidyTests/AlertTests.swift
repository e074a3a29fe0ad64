import Testing

/// Every alert has a runbook that is there, and is seen to begin and to end.
@Suite struct AlertTests {
    @Test func everyAlertHasItsRunbookAndItsTest() throws {
        let rules = try #require(projectText("deploy/prometheus/fieldpost.rules.yaml"))
        let tests = try #require(projectText("deploy/prometheus/fieldpost.rules.test.yaml"))
        let page = try #require(projectText("docs/operations.md"))
        let headings = Set(
            page.matches(of: /(?m)^## (.+)$/).map { $0.1.lowercased().map { $0 == " " ? "-" : String($0) }.joined() })
        let alerts = rules.split(separator: "- alert: ").dropFirst()
        #expect(alerts.count >= 12)
        for alert in alerts {
            let name = try #require(alert.split(separator: "\n").first)
            let runbook = try #require(alert.firstMatch(of: /runbook: docs\/operations\.md#(\S+)/)?.1, "\(name)")
            #expect(headings.contains(String(runbook)), "\(name) names #\(runbook)")
            #expect(page.contains("`\(name)`"), "docs/operations.md does not tell of \(name)")
            #expect(tests.contains("alertname: \(name)\n        exp_alerts:"), "\(name) is not seen to fire")
            #expect(tests.contains("alertname: \(name)}"), "\(name) is not seen to be silent")
        }
    }
}
