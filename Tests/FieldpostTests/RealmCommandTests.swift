import Essentials
import Foundation
import Model
import TestSupport
import Testing

/// What is in a realm, and who may open it.
@Suite(.ownThreads) struct RealmCommandTests {
    private let ana = UUID()
    private let bo = UUID()
    private let cleo = UUID()
    private let team = UUID()

    /// Ana is in the team, Bo is a manager, Cleo neither.
    private func makePeople(_ environment: inout TestEnvironment) throws {
        for (name, id) in [("ana", ana), ("bo", bo), ("cleo", cleo)] { try environment.letIn(name, id) }
        try environment.put([(bo, #"{"name":"Bo","role":"manager"}"#)], .person, into: .common)
        _ = try environment.makeTeam(team, members: [ana])
    }

    @Test func tellsWhoMayOpenATeamsRealmAndWhy() throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let path = RealmPath.team(team).description
        let some = try fieldpost("realm", "who", path, "--database", environment.conninfo, "--json").rows()
        #expect(some.map { $0["person"] as? String } == ["ana@example.com", "bo@example.com"])
        #expect(some[0]["why"] as? String == "they are a member of the team")
        #expect(some[1]["why"] as? String == "they are a manager, who may open every team's by naming it")
        let all = try fieldpost("realm", "who", path, "--all", "--database", environment.conninfo)
        let line = try #require(all.output.split(separator: "\n").last)
        #expect(line.hasPrefix("cleo@example.com") && line.contains(" no ") && line.hasSuffix("never"), "\(all.output)")

        // What the gateway reads, and not what was true once.
        try environment.remove(ana, from: team)
        try environment.add(cleo, to: team)
        let after = try fieldpost("realm", "who", path, "--database", environment.conninfo, "--json").rows()
        #expect(after.map { $0["person"] as? String } == ["bo@example.com", "cleo@example.com"])
    }

    @Test(arguments: [
        ("/users/ana@example.com", "ana", true, "it is their own"),
        ("/users/ana@example.com", "bo", false, "it is another person's own"),
        ("/common", "cleo", true, "it is everybody's"),
        ("/manager", "cleo", false, "they are a worker, and it is for managers and admins"),
        ("/manager", "bo", true, "they are a manager"),
        ("/polls", "bo", false, "it is the services' own, which no device opens"),
        ("/users", "bo", false, "it is read by integrations only"),
        ("/catalogues/7d1b0e4c-0000-4000-8000-000000000001", "ana", true, "their User object refers to it"),
        ("/catalogues/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "their User object refers to no catalogue"),
        ("/shares/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "there is no such share"),
        ("/teams/7d1b0e4c-0000-4000-8000-000000000001", "bo", false, "there is no such team"),
    ])
    func tellsOfOnePerson(path: String, name: String, isOpen: Bool, why: String) throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let user = #"{"catalogue":"7d1b0e4c-0000-4000-8000-000000000001"}"#
        try environment.put([(ana, user)], .user, into: .user("ana@example.com"))
        let said = try fieldpost(
            "realm", "who", path, "--person", "\(name)@example.com", "--database", environment.conninfo)
        let first = said.output.split(separator: "\n").first
        #expect(first == "\(name)@example.com \(isOpen ? "may" : "may not") open \(path): \(why)", "\(said)")
        #expect(said.output.contains("nobody has logged in with this address yet"))
    }

    @Test func tellsOfAnObjectThatSomebodyDoesNotSeeWhereItIs() throws {
        var environment = try TestEnvironment()
        try makePeople(&environment)
        let task = UUID()
        try environment.put([(task, #"{"title":"Mend the pump"}"#)], .fieldTask, into: .manager)
        let arguments = ["--person", "ana@example.com", "--id", task.text, "--database", environment.conninfo]
        let path = RealmPath.team(team).description
        let away = try fieldpost(["realm", "who", path] + arguments)
        #expect(away.output.contains("the realm is empty"), "\(away)")
        #expect(away.output.contains("\(task.text) is not in it; it is in /manager"), "\(away)")
        try environment.put([(task, #"{"title":"Mend the pump"}"#)], .fieldTask, into: .team(team))
        let there = try fieldpost(["realm", "who", path] + arguments)
        #expect(there.output.contains("FieldTask \(task.text) is in it, changed last at position"), "\(there)")
        let stranger = try fieldpost(
            "realm", "who", path, "--person", "dag@example.com", "--database", environment.conninfo)
        #expect(stranger.status == 1 && stranger.errors.contains("neither invited nor has logged in"))
    }

    @Test func showsWhatIsInARealm() throws {
        var environment = try TestEnvironment()
        let ids = (0..<3).map { _ in UUID() }.sorted { $0.text < $1.text }
        try environment.put(ids.map { ($0, "{\"title\":\"\($0.text)\"}") }, .note, into: .user("ana@example.com"))
        try environment.delete(.note, ids[0], in: .user("ana@example.com"))
        let place = ["/users/ana@example.com", "--database", environment.conninfo, "--json"]
        let counts = try fieldpost(["realm", "show"] + place).rows()
        #expect(counts.count == 1 && counts[0]["count"] as? Int == 2 && counts[0]["deleted"] as? Int == 1)
        let notes = try fieldpost(["realm", "show", "--kind", "Note"] + place).rows()
        #expect(notes.map { ($0["id"] as? String)?.lowercased() } == ids[1...].map(\.text))
        #expect((notes[0]["fields"] as? String)?.contains(ids[1].text) ?? false)
        let gone = try fieldpost(["realm", "show", "--id", ids[0].text] + place)
        #expect(gone.status == 1 && gone.errors.contains("it is in no other realm"), "\(gone)")
    }

    @Test func tellsHowTwoRealmsDiffer() throws {
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
        #expect(rows.map { ($0["id"] as? String)?.lowercased() } == ids[..<3].map(\.text))
        #expect(rows[2]["fields"] as? [String] == ["title"])
        let same = try fieldpost("realm", "diff", "\(first)", "\(first)", "--database", environment.conninfo)
        #expect(same.output == "\(first) and \(first) have the same objects\n")
    }

    @Test(arguments: [
        (["show", "users"], 2, "is no realm's path"), (["show", "/manager"], 1, "there is no realm /manager"),
        (["show", "/common", "--kind", "Nothing"], 2, "--kind Nothing: there are "),
        (["who", "/common", "--id", "8c1f"], 2, "--id 8c1f is no UUID"),
        (["diff", "/common", "/manager"], 1, "there is no realm"),
    ])
    func saysWhatIsWrong(arguments: [String], status: Int32, text: String) throws {
        let environment = try TestEnvironment()
        let said = try fieldpost(["realm"] + arguments + ["--database", environment.conninfo])
        #expect(said.status == status && said.errors.contains(text), "\(said)")
        #expect(said.errors.split(separator: "\n").count == 1, "\(said.errors)")
    }
}
