import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ServiceFiguresRuleTests {
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
        let names = ["a", "b", "c", "d", "e"]
        let samples = ServiceFiguresRule.samples(text.utf8, of: Set(names))
        #expect(names.map { ServiceFiguresRule.sum(samples, of: $0) } == [5.5, nil, nil, 1_000, nil])
    }

    @Test func figuresAreSummedByLabel() {
        let text = """
            a{environment="1"} 2
            a{environment="12",x="1"} 3
            a{x="1",environment="1"} 4
            a{my_environment="1"} 5
            a 6
            b{environment="1"} 7
            """
        let samples = ServiceFiguresRule.samples(text.utf8, of: ["a", "b"])
        #expect(ServiceFiguresRule.sums(samples, of: "a", by: "environment") == ["1": 6, "12": 3])
        #expect(ServiceFiguresRule.sums(samples, of: "c", by: "environment").isEmpty)
    }
}
