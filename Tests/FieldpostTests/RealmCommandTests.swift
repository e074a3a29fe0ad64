import Essentials
import Foundation
import Model
import TestSupport
import Testing

/// `fieldpost realm`.
@Suite(.ownThreads) struct RealmCommandTests {
    private let ana = UUID()
    private let bo = UUID()
    private let cleo = UUID()
    private let team = UUID()

    /// Creates Ana in the team, Bo as a manager, and Cleo.
    private func makePeople(_ environment: inout TestEnvironment) throws {
        for (name, id) in [("ana", ana), ("bo", bo), ("cleo", cleo)] { try environment.letIn(name, id) }
        try environment.put([(bo, #"{"name":"Bo","role":"manager"}"#)], .person, into: .common)
        _ = try environment.makeTeam(team, members: [ana])
    }

    @Test func accessListsPeopleOfTeamRealm() throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let path = RealmPath.team(team).description
        let some = try fieldpost("realm", "access", path, "--database", environment.conninfo, "--json").rows()
        #expect(some.map { $0["person"] as? String } == ["ana@example.com", "bo@example.com"])
        #expect(some[0]["reason"] as? String == "they are a member of the team")
        #expect(some[1]["reason"] as? String == "they are a manager, who may open every team's realm by name")
        let all = try fieldpost("realm", "access", path, "--all", "--database", environment.conninfo)
        let line = try #require(all.output.split(separator: "\n").last)
        #expect(line.hasPrefix("cleo@example.com") && line.contains(" no ") && line.hasSuffix("never"), "\(all.output)")

        // Uses the current state, as the gateway does.
        try environment.remove(ana, from: team)
        try environment.add(cleo, to: team)
        let after = try fieldpost("realm", "access", path, "--database", environment.conninfo, "--json").rows()
        #expect(after.map { $0["person"] as? String } == ["bo@example.com", "cleo@example.com"])
    }

    @Test(arguments: [
        ("/users/ana@example.com", "ana", true, "it is their own realm"),
        ("/users/ana@example.com", "bo", false, "it is another person's realm"),
        ("/common", "cleo", true, "all people may read it"),
        ("/manager", "cleo", false, "they are a worker; only managers and admins may open it"),
        ("/manager", "bo", true, "they are a manager"),
        ("/polls", "bo", false, "the realm is internal, devices cannot open it"),
        ("/users", "bo", false, "only integrations may read it"),
        ("/catalogues/7d1b0e4c-0000-4000-8000-000000000001", "ana", true, "their User object refers to it"),
        ("/catalogues/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "their User object refers to no catalogue"),
        ("/shares/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "the share does not exist"),
        ("/teams/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "the team does not exist"),
    ])
    func accessExplainsOnePerson(path: String, name: String, isOpen: Bool, why: String) throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let user = #"{"catalogue":"7d1b0e4c-0000-4000-8000-000000000001"}"#
        try environment.put([(ana, user)], .user, into: .user("ana@example.com"))
        let result = try fieldpost(
            "realm", "access", path, "--person", "\(name)@example.com", "--database", environment.conninfo)
        let first = result.output.split(separator: "\n").first
        #expect(first == "\(name)@example.com \(isOpen ? "may" : "may not") open \(path): \(why)", "\(result)")
        #expect(result.output.contains("no login with this address yet"))
    }

    /// A path in upper case is the same realm. A realm that cannot exist is an error, not a list of no people.
    @Test func accessNormalizesPathsAndRejectsMissingRealms() throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        func access(_ path: String, _ options: String...) throws -> CommandResult {
            try fieldpost(["realm", "access", path, "--database", environment.conninfo, "--json"] + options)
        }
        let people = try access("/teams/\(team.uuidString)").rows().map { $0["person"] as? String }
        #expect(people == ["ana@example.com", "bo@example.com"])
        #expect(try access("/users/ANA@example.com").rows().map { $0["person"] as? String } == ["ana@example.com"])
        let explained = try access("/users/ANA@example.com", "--person", "Ana@Example.com").rows()
        let facts = explained[0]["facts"] as? [String]
        #expect(facts?.first == "no login with this address yet", "\(explained)")
        for (path, reason) in [
            ("/teams/\(bo.text)", "no team has this id"), ("/users/dag@example.com", "no person has this address"),
            ("/shares/\(bo.text)", "it was never written"), ("/nowhere", "it was never written"),
        ] {
            let result = try access(path)
            #expect(result.status == 1 && result.output.isEmpty, "\(result)")
            #expect(result.errors.contains("realm \(path) does not exist: \(reason); realms are /users, "), "\(result)")
        }
    }

    @Test func accessReportsOtherRealmsOfObject() throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let task = UUID()
        try environment.put([(task, #"{"title":"Fix the pump"}"#)], .fieldTask, into: .manager)
        let arguments = ["--person", "ana@example.com", "--id", task.text, "--database", environment.conninfo]
        let path = RealmPath.team(team).description
        let elsewhere = try fieldpost(["realm", "access", path] + arguments)
        #expect(elsewhere.output.contains("the realm is empty"), "\(elsewhere)")
        #expect(elsewhere.output.contains("the realm does not have \(task.text); it is in /manager"), "\(elsewhere)")
        try environment.put([(task, #"{"title":"Fix the pump"}"#)], .fieldTask, into: .team(team))
        let present = try fieldpost(["realm", "access", path] + arguments)
        #expect(
            present.output.contains("the realm has the FieldTask \(task.text), last changed at position"), "\(present)")
        let unknown = try fieldpost(
            "realm", "access", path, "--person", "dag@example.com", "--database", environment.conninfo)
        #expect(unknown.status == 1 && unknown.errors.contains("was not invited and has not logged in"))
    }

    @Test func showListsRealmContent() throws {
        var environment = try TestEnvironment()
        let ids = (0..<3).map { _ in UUID() }.sorted { $0.text < $1.text }
        try environment.put(ids.map { ($0, "{\"title\":\"\($0.text)\"}") }, .note, into: .user("ana@example.com"))
        try environment.delete(.note, ids[0], in: .user("ana@example.com"))
        let arguments = ["/users/ana@example.com", "--database", environment.conninfo, "--json"]
        let counts = try fieldpost(["realm", "show"] + arguments).rows()
        #expect(counts.count == 1 && counts[0]["count"] as? Int == 2 && counts[0]["deleted"] as? Int == 1)
        let notes = try fieldpost(["realm", "show", "--kind", "Note"] + arguments).rows()
        #expect(notes.map { $0["id"] as? String } == ids[1...].map(\.text))
        #expect((notes[0]["fields"] as? [String: Any])?["title"] as? String == ids[1].text)
        let gone = try fieldpost(["realm", "show", "--id", ids[0].text] + arguments)
        #expect(gone.status == 1 && gone.errors.contains("it is in no other realm"), "\(gone)")
    }

    @Test func diffListsDifferences() throws {
        var environment = try TestEnvironment()
        let ids = (0..<4).map { _ in UUID() }.sorted { $0.text < $1.text }
        let (first, second) = (RealmPath.team(UUID()), RealmPath.team(UUID()))
        func put(_ id: UUID, _ title: String, _ path: RealmPath) throws {
            try environment.put([(id, "{\"description\":\"same\",\"title\":\"\(title)\"}")], .fieldTask, into: path)
        }
        try put(ids[0], "a", first)
        try put(ids[1], "b", second)
        try put(ids[2], "c", first)
        try put(ids[2], "C", second)
        try put(ids[3], "d", first)
        try put(ids[3], "d", second)
        let arguments = ["\(first)", "\(second)", "--database", environment.conninfo]
        let rows = try fieldpost(["realm", "diff", "--json"] + arguments).rows()
        #expect(rows.map { $0["state"] as? String } == ["only in the first", "only in the second", "differs"])
        #expect(rows.map { $0["id"] as? String } == ids[..<3].map(\.text))
        #expect(rows[2]["fields"] as? [String] == ["title"])
        let same = try fieldpost("realm", "diff", "\(first)", "\(first)", "--database", environment.conninfo)
        #expect(same.output == "\(first) and \(first) have the same objects\n")
    }

    @Test(arguments: [
        (["show", "users"], 2, "is not a realm's path"), (["show", "/manager"], 1, "realm /manager does not exist"),
        (["show", "/common", "--kind", "Nothing"], 2, "--kind must be one of "),
        (["access", "/common", "--id", "8c1f"], 2, "--id 8c1f is not a UUID"),
        (["diff", "/common", "/manager"], 1, "does not exist"),
    ])
    func invalidArgumentsAreReported(arguments: [String], status: Int32, text: String) throws {
        let environment = try TestEnvironment()
        let result = try fieldpost(["realm"] + arguments + ["--database", environment.conninfo])
        #expect(result.status == status && result.errors.contains(text), "\(result)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }
}
