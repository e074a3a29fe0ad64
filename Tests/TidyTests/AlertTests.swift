import Foundation
import Testing

/// Every alert has a runbook, and tests that it fires and resolves.
@Suite struct AlertTests {
    /// The headings of each runbook, in this order.
    static let headings = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

    @Test func everyAlertHasItsRunbookAndItsTest() throws {
        let rules = try #require(projectText("deploy/prometheus/fieldpost.rules.yaml"))
        let tests = try #require(projectText("deploy/prometheus/fieldpost.rules.test.yaml"))
        let overview = try #require(projectText("docs/operators/troubleshooting.md"))
        var names: Set<String> = []
        for alert in rules.split(separator: "- alert: ").dropFirst() {
            let name = String(try #require(alert.split(separator: "\n").first))
            names.insert(name)
            // Absolute with the external label, otherwise a path in the sources.
            let url =
                #"runbook_url: '{{ with $externalLabels.fieldpost_runbooks }}{{ printf . "\#(name)" }}"#
                + "{{ else }}docs/operators/runbooks/\(name).md{{ end }}'\n"
            #expect(alert.contains(url), "\(name) names another runbook")
            #expect(overview.contains("| `\(name)` | ["), "the overview has no row for \(name)")
            #expect(overview.contains("(runbooks/\(name).md)"), "the overview has no link to the runbook of \(name)")
            #expect(tests.contains("alertname: \(name)\n        exp_alerts:"), "\(name) is not seen to fire")
            #expect(tests.contains("alertname: \(name)}"), "\(name) is not seen to be silent")
        }
        #expect(names.count >= 12)
        let runbooks = TextFile.runbooks
        #expect(Set(runbooks.map { "\($0.path)" }) == Set(names.map { "docs/operators/runbooks/\($0).md" }))
        for runbook in runbooks {
            let found = runbook.text.matches(of: /(?m)^## (.+)$/).map { String($0.1) }
            #expect(found == Self.headings, "\(runbook.path)")
        }
    }

    /// Every failure and every incident names its alerts, or why it has none.
    @Test func everyFailureHasAnAlert() throws {
        let rules = try #require(projectText("deploy/prometheus/fieldpost.rules.yaml"))
        let deployment = try #require(projectText("docs/operators/deployment.md"))
        let troubleshooting = try #require(projectText("docs/operators/troubleshooting.md"))
        let table = try #require(deployment.components(separatedBy: "| failure | alert |").dropFirst().first)
        let rows = table.split(separator: "\n").dropFirst(2).prefix { $0.hasPrefix("|") }
        let incidents = try #require(
            troubleshooting.components(separatedBy: "\n## ").first { $0.hasPrefix("Incidents\n") })
        let sections = incidents.components(separatedBy: "\n### ").dropFirst()
        #expect(rows.count >= 10 && sections.count >= 15)
        var alerts = rows.map { String($0.split(separator: "|")[1]) }
        for section in sections {
            let paragraph = section.split(separator: "\n").first { $0.hasPrefix("**Alert.** ") }
            alerts.append(String(try #require(paragraph, "\(section.prefix(60)) has no alert")))
        }
        for text in alerts {
            let names = text.matches(of: /`(Fieldpost[A-Za-z]+)`/).map { String($0.1) }
            #expect(!names.isEmpty || text.lowercased().contains("none"), "\(text)")
            for name in names { #expect(rules.contains("alert: \(name)\n"), "\(text)") }
        }
    }
}

extension TextFile {
    /// The runbooks of alerts.
    static let runbooks = documents.filter { $0.path.hasPrefix("docs/operators/runbooks/") }
}
