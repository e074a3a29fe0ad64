/// All sets of an enumeration's cases. Declarations share them, instead of having thousands of equal ones.
struct CaseSets<Case: CaseIterable & Hashable & Sendable>: Sendable {
    private let cases = Array(Case.allCases)
    private let sets: [Set<Case>]

    /// - Parameter type: An enumeration of few cases.
    init(_ type: Case.Type) {
        let cases = cases
        sets = (0..<(1 << cases.count)).map { bits in
            Set(cases.indices.filter { bits & 1 << $0 != 0 }.map { cases[$0] })
        }
    }

    /// Returns the set of these cases.
    func set(_ members: [Case]) -> Set<Case> {
        sets[cases.indices.reduce(0) { bits, index in members.contains(cases[index]) ? bits | 1 << index : bits }]
    }
}
