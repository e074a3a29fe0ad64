import FoundationEssentials
import Model
import Testing

@testable import LocationFanOut

/// The rule as tables.
@Suite struct LocationRuleTests {
    private static let (red, blue, old) = (UUID(), UUID(), UUID())

    private static func picture(
        _ isTold: Bool, isThere: Bool = true, memberships: Set<UUID> = [], teams: Set<UUID> = [],
        copies: [RealmPath: Bool] = [:]
    ) -> PersonPicture {
        PersonPicture(isTold: isTold, isThere: isThere, memberships: memberships, teams: teams, copies: copies)
    }

    /// Whether a position is told, whether the person is there, memberships, teams that are there: where copies are to
    /// be.
    private static let placed: [(PersonPicture, Set<RealmPath>)] = [
        (picture(true), [.manager]),
        (picture(false), []), (picture(true, isThere: false), []), (picture(false, isThere: false), []),
        (picture(true, memberships: [red], teams: [red]), [.manager, .team(red)]),
        (picture(true, memberships: [red, blue], teams: [red, blue]), [.manager, .team(red), .team(blue)]),
        // A team that is not there yet, or no more; and one of others.
        (picture(true, memberships: [red, blue], teams: [blue]), [.manager, .team(blue)]),
        (picture(true, memberships: [red], teams: []), [.manager]),
        (picture(true, memberships: [], teams: [red, blue]), [.manager]),
        // Who tells no position, and who is no person any more, is in no team's realm either.
        (picture(false, memberships: [red], teams: [red]), []),
        (picture(true, isThere: false, memberships: [red], teams: [red]), []),
    ]

    @Test(arguments: placed)
    func whereCopiesAre(_ picture: PersonPicture, _ places: Set<RealmPath>) {
        #expect(LocationRule.places(picture) == places)
        // Where there is nothing, that is what is to be written.
        #expect(LocationRule.changes(picture) == places.mapped(to: .put))
    }

    /// What is there, and whether it says what is told; and what is to be done.
    private static let changed: [([RealmPath: Bool], [RealmPath: LocationRule.Change])] = [
        ([:], [.manager: .put, .team(red): .put]),
        ([.manager: true, .team(red): true], [:]),
        ([.manager: false, .team(red): true], [.manager: .put]),
        ([.manager: true, .team(red): true, .team(old): true], [.team(old): .delete]),
        ([.manager: false, .team(old): false], [.manager: .put, .team(red): .put, .team(old): .delete]),
    ]

    @Test(arguments: changed)
    func onlyTheDifferenceIsWritten(
        _ copies: [RealmPath: Bool], _ changes: [RealmPath: LocationRule.Change]
    ) {
        let picture = Self.picture(true, memberships: [Self.red], teams: [Self.red], copies: copies)
        #expect(LocationRule.changes(picture) == changes)
        // Who stops telling it is seen by nobody any more.
        var silent = picture
        silent.isTold = false
        #expect(LocationRule.changes(silent) == Set(copies.keys).mapped(to: .delete))
    }
}

extension Set {
    fileprivate func mapped<Value>(to value: Value) -> [Element: Value] {
        Dictionary(uniqueKeysWithValues: map { ($0, value) })
    }
}
