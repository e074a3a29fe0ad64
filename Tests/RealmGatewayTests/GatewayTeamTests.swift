import Essentials
import Foundation
import HTTPClient
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Unique names of teams.
@Suite(.ownThreads) struct GatewayTeamTests {
    private func results(_ device: GatewayDevice, _ mutations: [(op: String, id: UUID, fields: String?)]) async throws
        -> [String]
    {
        var list: [String] = []
        for mutation in mutations {
            list.append(
                await device.mutation(mutation.op, mutation.id, mutation.fields, kind: "Team", in: "/common"))
        }
        return try await device.send(list).results.map { String($0.prefix { $0 != " " }) }
    }

    private func name(_ name: String) -> String { "{\"name\":\"\(name)\"}" }

    @Test(arguments: [false, true]) func teamNameIsUnique(isIntegration: Bool) async throws {
        try await withGateway { fixture in
            var device = try await fixture.device("manager@example.com", role: .manager)
            if isIntegration { device = GatewayDevice(fixture, bearer: try fixture.addIntegration("books")) }
            let (red, blue, green) = (UUID(), UUID(), UUID())
            #expect(try await results(device, [("put", red, name("Rød"))]) == ["accepted"])
            // In any case, with white space around it, in a separate request, and after other mutations.
            let taken = ["Rød", "rØD", " rød\\t", "\\u0072ød", "R\\u00d8D", "R\\u200bød", "rød\\u3164"]
            let refused = try await results(device, taken.map { ("put", UUID(), name($0)) })
            #expect(refused == taken.map { _ in "name-taken" })
            let others = try await results(
                device,
                [
                    ("put", blue, name("Blue")), ("put", green, name("bLUE")), ("put", green, name("Green")),
                    ("patch", blue, name("red ")), ("patch", green, name("RED")), ("patch", green, name("RØD")),
                    // Its own name, in another case or with other fields.
                    ("patch", red, name("RØD")), ("put", red, "{\"name\":\"RØD\",\"teamDescription\":\"d\"}"),
                    ("patch", red, "{\"teamDescription\":\"e\"}"),
                    ("put", UUID(), name(" \\n")), ("put", UUID(), name("")), ("patch", red, name(" ")),
                ])
            #expect(
                others == [
                    "accepted", "name-taken", "accepted", "accepted", "name-taken", "name-taken",
                    "accepted", "accepted", "accepted", "invalid-field", "invalid-field", "invalid-field",
                ])
            // A name is free once its team is renamed or deleted, in the same request too.
            let end = try await results(
                device,
                [
                    ("put", UUID(), name("blue")), ("delete", red, nil), ("patch", green, name("Rød")),
                    ("put", UUID(), name("green")),
                ])
            #expect(end == ["accepted", "accepted", "accepted", "accepted"])
            let names = try fixture.stored("/common").filter { $0.key.hasPrefix("Team/") }.values.map { fields in
                try JSONDecoder().decode(Team.self, from: Data(fields.utf8)).name
            }
            #expect(names.sorted() == ["Rød", "blue", "green", "red "])
        }
    }

    /// Unicode's full case folding, canonical equivalence, and invisible characters.
    @Test func visuallyEqualNamesAreEqual() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let pairs = [
                ("Straße", "STRASSE"), ("οδος", "ΟΔΟΣ"), ("Nordé", "Norde\u{301}"), ("Syd Vest", "syd\u{A0} vest"),
            ]
            for (first, second) in pairs {
                let responses = try await results(
                    device,
                    [("put", UUID(), name(first)), ("put", UUID(), name(second)), ("put", UUID(), name(second))])
                #expect(responses == ["accepted", "name-taken", "name-taken"], "\(second)")
            }
            let unseen = ["\\u200b", "\\u2800", "\\u3164", "\\u00ad \\ufeff"]
            let responses = try await results(device, unseen.map { ("put", UUID(), name($0)) })
            #expect(responses == unseen.map { _ in "invalid-field" })
        }
    }

    /// One character can have any number of bytes.
    @Test func problemTruncatesALongName() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let long = name("x" + String(repeating: "\u{301}", count: 1_900))
            let puts = [
                await device.mutation("put", UUID(), long, kind: "Team", in: "/common"),
                await device.mutation("put", UUID(), long, kind: "Team", in: "/common"),
            ]
            let response = try await device.send(puts)
            #expect(response.results.last == "name-taken" && response.body.utf8.count < 1_000)
        }
    }

    /// A stored invisible name of an earlier release: every other field can be changed, and the name.
    @Test func teamWithAStoredInvisibleNameCanBeChanged() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let id = UUID()
            try fixture.put(.team, id, name("\\u200b"), in: .common)
            let responses = try await results(
                device,
                [
                    ("patch", id, "{\"teamDescription\":\"d\"}"), ("patch", id, name("\\u3164")),
                    ("patch", id, "{\"backgroundColor\":\"red\"}"), ("patch", id, name("North")),
                ])
            #expect(responses == ["accepted", "invalid-field", "invalid-field", "accepted"])
            let stored = try #require(fixture.stored("/common").first { $0.key.hasPrefix("Team/") }?.value)
            let team = try JSONDecoder().decode(Team.self, from: Data(stored.utf8))
            #expect(team == Team(name: "North", teamDescription: "d"))
        }
    }

    @Test func rejectionQuotesTheName() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            try fixture.put(.team, UUID(), name("North"), in: .common)
            let put = await device.mutation("put", UUID(), name("north"), kind: "Team", in: "/common")
            let body = try await device.send([put]).body
            #expect(body.contains("urn:fieldpost:problem:name-taken") && body.contains("'name'"))
            #expect(body.contains("'north'"))
        }
    }

    /// Two imported teams with one name: each may be changed, and may keep its name.
    @Test func importedTeamsWithOneNameCanBeChanged() async throws {
        try await withGateway { fixture in
            let device = try await fixture.device("manager@example.com", role: .manager)
            let ids = [UUID(), UUID()]
            for id in ids { try fixture.put(.team, id, name("North"), in: .common) }
            let changes = ids.map { ("patch", $0, Optional("{\"backgroundColor\":\"ff8800\"}")) }
            #expect(try await results(device, changes) == ["accepted", "accepted"])
            #expect(try await results(device, [("put", ids[0], name("NORTH"))]) == ["accepted"])
            #expect(try await results(device, [("put", ids[0], name("South"))]) == ["accepted"])
            #expect(try await results(device, [("put", ids[0], name("North"))]) == ["name-taken"])
        }
    }

    /// Of managers who set one name concurrently, at two gateways, one is accepted; so is one who sets it before all
    /// others.
    @Test func concurrentWritersOfOneNameGiveOneSuccess() async throws {
        try await withGateway(count: 2) { fixture in
            var devices: [GatewayDevice] = []
            for number in 0..<6 {
                devices.append(
                    try await fixture.device("manager\(number)@example.com", role: .manager, gateway: number % 2))
            }
            for round in 0..<10 {
                let text = round % 2 == 0 ? "team \(round)" : "TEAM \(round)"
                let responses = try await withThrowingTaskGroup(of: [String].self) { group in
                    for (number, device) in devices.enumerated() {
                        let fields = name(number % 2 == 0 ? text : text.capitalized)
                        group.addTask { try await results(device, [("put", UUID(), fields)]) }
                    }
                    var responses: [String] = []
                    for try await response in group { responses += response }
                    return responses
                }
                #expect(responses.sorted() == ["accepted"] + [String](repeating: "name-taken", count: 5))
            }
            #expect(try fixture.stored("/common").keys.count { $0.hasPrefix("Team/") } == 10)
        }
    }
}
