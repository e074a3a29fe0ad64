import Testing

@testable import LagMonitor

@Suite struct ServiceFiguresRuleTests {
    @Test func figuresAreSumsOverLabels() {
        let text = """
            # HELP a A.
            # TYPE a gauge
            a{x="1 2",y="}"} 2
            a{x="2"} 3.5
            ab 7
            b NaN
            c
            d 1e3
            """
        let sums = ServiceFiguresRule.sums(text.utf8, of: ["a", "b", "c", "d", "e"])
        #expect(sums == ["a": 5.5, "d": 1_000])
    }
}
