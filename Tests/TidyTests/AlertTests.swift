import Testing

/// Every alert has a runbook that is there, and is seen to begin and to end.
@Suite struct AlertTests {
    /// What each runbook says, in this order.
    static let headings = [
        "What you see", "Why", "How to find out", "What to do", "How to know that it is over",
    ]

    @Test func everyAlertHasItsRunbookAndItsTest() throws {
        let rules = try #require(projectText("deploy/prometheus/fieldpost.rules.yaml"))
        let tests = try #require(projectText("deploy/prometheus/fieldpost.rules.test.yaml"))
        let overview = try #require(projectText("docs/operations.md"))
        var names: Set<String> = []
        for alert in rules.split(separator: "- alert: ").dropFirst() {
            let name = String(try #require(alert.split(separator: "\n").first))
            names.insert(name)
            #expect(alert.contains("runbook_url: docs/operations/\(name).md\n"), "\(name) names another runbook")
            #expect(overview.contains("| `\(name)` | ["), "docs/operations.md does not lead to that of \(name)")
            #expect(overview.contains("(operations/\(name).md)"), "docs/operations.md does not lead to that of \(name)")
            #expect(tests.contains("alertname: \(name)\n        exp_alerts:"), "\(name) is not seen to fire")
            #expect(tests.contains("alertname: \(name)}"), "\(name) is not seen to be silent")
        }
        #expect(names.count >= 12)
        let runbooks = TextFile.runbooks
        #expect(Set(runbooks.map { "\($0.path)" }) == Set(names.map { "docs/operations/\($0).md" }))
        for runbook in runbooks {
            let found = runbook.text.matches(of: /(?m)^## (.+)$/).map { String($0.1) }
            #expect(found == Self.headings, "\(runbook.path)")
        }
    }
}

extension TextFile {
    /// The runbooks of alerts.
    static let runbooks = documents.filter { $0.path.hasPrefix("docs/operations/") }
}
