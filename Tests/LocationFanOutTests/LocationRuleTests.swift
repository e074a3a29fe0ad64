import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import LocationFanOut

/// The rule, as tables.
@Suite(.ownThreads) struct LocationRuleTests {
    private static let (red, blue, old) = (UUID(), UUID(), UUID())

    private static func snapshot(
        _ hasLocation: Bool, exists: Bool = true, memberships: Set<UUID> = [], teams: Set<UUID> = [],
        copies: [RealmPath: Bool] = [:]
    ) -> PersonSnapshot {
        PersonSnapshot(hasLocation: hasLocation, exists: exists, memberships: memberships, teams: teams, copies: copies)
    }

    /// Snapshots with the expected realms of copies.
    private static let copyCases: [(PersonSnapshot, Set<RealmPath>)] = [
        (snapshot(true), [.manager]),
        (snapshot(false), []), (snapshot(true, exists: false), []), (snapshot(false, exists: false), []),
        (snapshot(true, memberships: [red], teams: [red]), [.manager, .team(red)]),
        (snapshot(true, memberships: [red, blue], teams: [red, blue]), [.manager, .team(red), .team(blue)]),
        // A team that does not exist, and one without a membership.
        (snapshot(true, memberships: [red, blue], teams: [blue]), [.manager, .team(blue)]),
        (snapshot(true, memberships: [red], teams: []), [.manager]),
        (snapshot(true, memberships: [], teams: [red, blue]), [.manager]),
        // Without a location or without a person, no team's realm has a copy.
        (snapshot(false, memberships: [red], teams: [red]), []),
        (snapshot(true, exists: false, memberships: [red], teams: [red]), []),
    ]

    @Test(arguments: copyCases)
    func copiesAreInExpectedRealms(_ snapshot: PersonSnapshot, _ paths: Set<RealmPath>) {
        #expect(LocationRule.copyPaths(snapshot) == paths)
        // Without existing copies, all expected ones are written.
        #expect(LocationRule.changes(snapshot) == paths.mapped(to: .put))
    }

    /// Existing copies, and whether each is current, with the expected changes.
    private static let changeCases: [([RealmPath: Bool], [RealmPath: LocationRule.Change])] = [
        ([:], [.manager: .put, .team(red): .put]),
        ([.manager: true, .team(red): true], [:]),
        ([.manager: false, .team(red): true], [.manager: .put]),
        ([.manager: true, .team(red): true, .team(old): true], [.team(old): .delete]),
        ([.manager: false, .team(old): false], [.manager: .put, .team(red): .put, .team(old): .delete]),
    ]

    @Test(arguments: changeCases)
    func onlyDifferencesAreWritten(
        _ copies: [RealmPath: Bool], _ changes: [RealmPath: LocationRule.Change]
    ) {
        let snapshot = Self.snapshot(true, memberships: [Self.red], teams: [Self.red], copies: copies)
        #expect(LocationRule.changes(snapshot) == changes)
        // Without a location, all copies are deleted.
        var withoutLocation = snapshot
        withoutLocation.hasLocation = false
        #expect(LocationRule.changes(withoutLocation) == Set(copies.keys).mapped(to: .delete))
    }
}

extension Set {
    fileprivate func mapped<Value>(to value: Value) -> [Element: Value] {
        Dictionary(uniqueKeysWithValues: map { ($0, value) })
    }
}
