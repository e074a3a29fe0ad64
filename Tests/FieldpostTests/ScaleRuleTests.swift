import Testing

@testable import Fieldpost

struct ScaleRuleTests {
    /// The formula is compared with a count of single keys.
    @Test(arguments: [(24, 48), (24, 36), (24, 25), (12, 13), (1, 8), (7, 7)])
    func percentMovedMatchesCountedKeys(before: Int32, after: Int32) {
        let hashes = 0..<(before * after)
        let movedCount = hashes.count { $0 % before != $0 % after }
        #expect(Int(ScaleRule.percentMoved(from: before, to: after)) == movedCount * 100 / hashes.count)
    }
}
