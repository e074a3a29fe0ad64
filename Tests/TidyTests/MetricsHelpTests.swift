import Model
import Testing

/// Every exported metric has a help text, and every help text has a metric.
@Suite struct MetricsHelpTests {
    @Test func everyMetricHasAHelpText() throws {
        let help = try #require(projectText("Shared/Platform/Telemetry/MetricsHelp.swift"))
        let texts = Set(help.matches(of: /"([a-z_]+)":\s*"[^"\\]+[.]",/).map { String($0.1) })
        var names: Set<String> = []
        for file in SourceFile.all where file.path.hasPrefix("Services/") || file.path.hasPrefix("Shared/") {
            for made in file.text.matches(of: /(Counter|Gauge|Meter|Recorder|Timer)\(\s*label: "([^"]+)"/) {
                let name = String(made.2.map { $0 == "." ? "_" : $0 })
                names.insert(name + (made.1 == "Counter" ? "_total" : made.1 == "Timer" ? "_seconds" : ""))
            }
            for made in file.text.matches(of: /add\(\s*"((?:process|kafka|fieldpost)_[a-z_]+)"/) {
                names.insert(String(made.1))
            }
        }
        #expect(names.count >= 10)
        #expect(names.subtracting(texts) == [], "these need a text in Shared/Platform/Telemetry/MetricsHelp.swift")
        #expect(texts.subtracting(names) == [], "these are no longer exported")
    }
}
