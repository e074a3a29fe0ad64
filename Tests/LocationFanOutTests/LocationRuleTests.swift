import FoundationEssentials
import Model
import Postgres
import Testing

@testable import LocationFanOut

/// The rule as tables.
@Suite struct LocationRuleTests {
    private static let here = json(1), there = json(2)
    private static let (red, blue, old) = (UUID(), UUID(), UUID())

    private static func json(_ latitude: Int) -> CanonicalJSON {
        do {
            return try CanonicalJSON(#"{"latitude":\#(latitude),"longitude":0}"#)
        } catch {
            fatalError("\(error)")
        }
    }

    private static func picture(
        _ position: CanonicalJSON?, isThere: Bool = true, memberships: Set<UUID> = [], teams: Set<UUID> = [],
        copies: [RealmPath: CanonicalJSON] = [:]
    ) -> PersonPicture {
        PersonPicture(
            position: position, isThere: isThere, memberships: memberships, teams: teams, copies: copies)
    }

    /// A position, a person, memberships, teams that are there: where copies are to be.
    private static let placed: [(PersonPicture, Set<RealmPath>)] = [
        (picture(here), [.manager]),
        (picture(nil), []), (picture(here, isThere: false), []), (picture(nil, isThere: false), []),
        (picture(here, memberships: [red], teams: [red]), [.manager, .team(red)]),
        (picture(here, memberships: [red, blue], teams: [red, blue]), [.manager, .team(red), .team(blue)]),
        // A team that is not there yet, or no more; and one of others.
        (picture(here, memberships: [red, blue], teams: [blue]), [.manager, .team(blue)]),
        (picture(here, memberships: [red], teams: []), [.manager]),
        (picture(here, memberships: [], teams: [red, blue]), [.manager]),
        // Who tells no position, and who is no person any more, is in no team's realm either.
        (picture(nil, memberships: [red], teams: [red]), []),
        (picture(here, isThere: false, memberships: [red], teams: [red]), []),
    ]

    @Test(arguments: placed)
    func whereCopiesAre(_ picture: PersonPicture, _ places: Set<RealmPath>) {
        #expect(LocationRule.places(picture) == places)
        // Where there is nothing, that is what is to be written.
        #expect(LocationRule.changes(picture).mapValues { $0 == .put(Self.here) } == places.mapped(to: true))
    }

    /// What is there, and what is to be done.
    private static let changed: [([RealmPath: CanonicalJSON], [RealmPath: LocationRule.Change])] = [
        ([:], [.manager: .put(here), .team(red): .put(here)]),
        ([.manager: here, .team(red): here], [:]),
        ([.manager: there, .team(red): here], [.manager: .put(here)]),
        ([.manager: here, .team(red): here, .team(old): here], [.team(old): .delete]),
        ([.manager: there, .team(old): there], [.manager: .put(here), .team(red): .put(here), .team(old): .delete]),
    ]

    @Test(arguments: changed)
    func onlyTheDifferenceIsWritten(
        _ copies: [RealmPath: CanonicalJSON], _ changes: [RealmPath: LocationRule.Change]
    ) {
        let picture = Self.picture(Self.here, memberships: [Self.red], teams: [Self.red], copies: copies)
        #expect(LocationRule.changes(picture) == changes)
        // Who stops telling it is seen by nobody any more.
        var silent = picture
        silent.position = nil
        #expect(LocationRule.changes(silent) == Set(copies.keys).mapped(to: .delete))
    }
}

extension Set {
    fileprivate func mapped<Value>(to value: Value) -> [Element: Value] {
        Dictionary(uniqueKeysWithValues: map { ($0, value) })
    }
}
