import Foundation
import Model
import Testing

@Suite struct NamesTests {
    @Test func pathsOfRealms() throws {
        let id = try #require(UUID(uuidString: "8F4B9A9E-0A51-4A0E-9F0C-2F3A7B1F6C11"))
        #expect(RealmPath.users.description == "/users")
        #expect(try RealmPath.user("Ana@Example.com").description == "/users/ana@example.com")
        #expect(try RealmPath.user("ana@example.com").email == "ana@example.com")
        #expect(RealmPath.catalogue(id).description == "/catalogues/8f4b9a9e-0a51-4a0e-9f0c-2f3a7b1f6c11")
        #expect(RealmPath.catalogue(id).catalogueID == id)
        #expect(RealmPath.users.email == nil)
    }

    @Test(arguments: [
        "", "users", "/", "/users/", "//ana", "/users/a/b", "/users/a b", "/users/a?b", "/users/a#b", "/users/é",
        "/users/a%2Fb", "/users/a\nb", "/users/" + String(repeating: "a", count: 255),
    ])
    func invalidPathIsRejected(text: String) { #expect(RealmPath(text) == nil) }

    @Test func addressWithPathCharactersIsRejected() {
        #expect(throws: InvalidRealmPath.self) { try RealmPath.user("../catalogues") }
        #expect(throws: InvalidRealmPath.self) { try RealmPath.user("") }
    }

    @Test func subjectsRoundTrip() throws {
        let id = UUID()
        let subject = EventSubject(realm: try RealmPath.user("a@b.c"), kind: .timeEntry, id: id)
        #expect(subject.description == "/users/a@b.c/TimeEntry/" + id.uuidString.lowercased())
        #expect(EventSubject(subject.description) == subject)
        #expect(EventSubject("/users/Realms/\(id)") == EventSubject(realm: .users, kind: .realms, id: id))
        let own = try #require(EventSubject("/users/a@b.c/Inspection/\(id)"))
        #expect(own.kind == Kind(named: "Inspection") && EventSubject(own.description) == own)
        for bad in [
            "", "/users", "/users/TimeEntry", "/users/nothing/\(id)", "/users/No-thing/\(id)", "/users/TimeEntry/1",
            "users/TimeEntry/\(id)",
        ] {
            #expect(EventSubject(bad) == nil, "\(bad)")
        }
    }

    @Test func kindHasAtMostOneTopic() {
        for kind in Kind.allCases {
            #expect(Topics.all.filter { $0.kinds.contains(kind) } == (Topics.topic(of: kind).map { [$0] } ?? []))
        }
        #expect(Topics.topic(of: .timeEntry)?.name == "entry.events")
        #expect(Topics.topic(of: .timeEntry)?.partitions == 24)
        #expect(Topics.topic(of: .seenRecord) == Topics.topic(of: .timeEntry))
        #expect(Topics.topic(of: .poll)?.name == "poll.events")
        #expect(Topics.topic(of: .realms)?.name == "realm.events")
        #expect(Topics.topic(of: .realms)?.retention == .seconds(604_800))
        #expect(Topics.topic(of: .user) == nil)
        #expect(Set(Topics.all.map(\.name)).count == Topics.all.count)
    }

    /// Every kind that a device or an integration writes is published from its realms, or the kind's row lists the
    /// exceptions.
    @Test func kindIsPublishedFromItsRealms() {
        let routes = Kind.allCases.compactMap { kind in kind.row.route.map { (kind, $0) } }
        let realms = Dictionary(uniqueKeysWithValues: routes.map { ($0.rawValue, $1.realms) })
        #expect(
            realms == [
                "Realms": [.users], "TimeEntry": [.user], "SeenRecord": [.system], "Poll": [.system],
                "FieldTask": [.manager, .team, .user], "TaskNote": [.manager, .team, .user], "Location": [.user],
                "Person": [.common], "Team": [.common], "Membership": [.common],
                "Appointment": [.user, .share], "Note": [.user, .share], "SharedItem": [.user], "Share": [.share],
                "DefectPoll": [.system], "Notice": [.user], "DefectCommand": [.user], "DefectAccount": [.user],
            ])
        #expect(RealmPath.polls.realmClass.name == .system)
        #expect(RealmPath("/seen/ana@example.com")?.realmClass.name == .system)
        for (kind, route) in routes {
            #expect(!route.realms.isEmpty && Set(route.realms).count == route.realms.count, "\(kind)")
        }
        let patterns = RealmClass.Name.allCases.map(\.pattern)
        #expect(Set(patterns).count == patterns.count)
    }

    @Test func environmentsAreNumbers() throws {
        #expect(try JSONDecoder().decode([EnvironmentID].self, from: Data("[7]".utf8)) == [EnvironmentID(rawValue: 7)])
    }
}
