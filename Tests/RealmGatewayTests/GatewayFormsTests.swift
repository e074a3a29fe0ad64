import Essentials
import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A value is stored and read in one form, whichever form a device writes.
@Suite(.ownThreads) struct GatewayFormsTests {
    @Test func idsAndIntegersAreNormalised() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let (entry, template, context, node) = (UUID(), UUID(), UUID(), UUID())
            let fields = """
                {"durationSeconds":3600.0,"reportingTemplate":"\(template.uuidString)",\
                "reporting":[{"context":"\(context.uuidString)","node":"\(node.uuidString)"}]}
                """
            let appointment = UUID()
            let when = #""when":"2026-03-30T10:00:00Z","why":"x""#
            let mutations = [
                await phone.mutation("put", entry, fields),
                await phone.mutation("put", appointment, "{\(when),\"durationMinutes\":1e1}", kind: "Appointment"),
                await phone.mutation("patch", appointment, #"{"durationMinutes":9.0E1}"#, kind: "Appointment"),
            ].map {
                $0.replacing("\"sequence\":1,", with: "\"sequence\":1.0,").replacing(
                    "\"sequence\":3,", with: "\"sequence\":3e0,")
            }
            let response = try await phone.send(mutations)
            #expect(response.results.allSatisfy { $0.hasPrefix("accepted") }, "\(response.body)")
            #expect(response.json["expectedSequence"] as? Int == 4)
            try await phone.sync()
            let shown = await phone.shown(phone.realm)
            let stored = try fixture.stored(await phone.realm)
            for objects in [shown, stored] {
                let own = try #require(objects["TimeEntry/\(entry.text)"])
                #expect(
                    own.contains(#""durationSeconds":3600,"#)
                        && own.contains(#""reportingTemplate":"\#(template.text)""#))
                #expect(own.contains(#"[{"context":"\#(context.text)","node":"\#(node.text)"}]"#), "\(own)")
                #expect(objects["Appointment/\(appointment.text)"]?.contains(#""durationMinutes":90,"#) == true)
            }
            // As JSON text too: JSON parsers differ on whether 3600.0 equals 3600.
            let texts = try fixture.withDatabase { connection in
                try connection.run("SELECT fields FROM store.object WHERE kind = \(Kind.appointment)").decode(
                    String.self)
            }
            #expect(texts.count == 1 && texts[0].contains(#""durationMinutes": 90"#) && !texts[0].contains("90.0"))
        }
    }

    /// Fractions are rejected in a person's entry and in any other object.
    @Test func fractionalNumbersAreRejectedWithTheSameMessage() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            for value in ["3600.5", "1e-1", "\"3600\"", "true", "[]"] {
                let when = #""when":"2026-03-30T10:00:00Z","why":"x""#
                let response = try await phone.send([
                    await phone.mutation("put", UUID(), "{\"durationSeconds\":\(value)}"),
                    await phone.mutation("put", UUID(), "{\(when),\"durationMinutes\":\(value)}", kind: "Appointment"),
                ])
                #expect(response.results == ["invalid-field", "invalid-field"], "\(response.body)")
                #expect(response.body.contains("'durationSeconds' must be a whole number"))
                #expect(response.body.contains("'durationMinutes' must be a whole number"))
            }
        }
    }

    /// A path with an upper-case UUID is the same realm.
    @Test func pathWithUpperCaseUUIDIsTheSameRealm() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let (team, task) = (UUID(), UUID())
            try fixture.put(.team, team, #"{"name":"North"}"#, in: .common)
            try fixture.put(.fieldTask, task, #"{"title":"x"}"#, in: .team(team))
            let path = "/teams/\(team.uuidString)"
            for body in ["{\"realms\":{\"\(path)\":null}}", "{\"only\":[\"\(path)\"]}"] {
                let response = GatewayResponse(try await fixture.client.send(manager.request("POST", "/v1/sync", body)))
                #expect(response.body.contains("{\"open\":{\"realm\":\"/teams/\(team.text)\""), "\(response.body)")
                #expect(response.body.contains("\"id\":\"\(task.text)\"") && !response.body.contains(team.uuidString))
            }
            let patch = await manager.mutation("patch", task, #"{"isCompleted":true}"#, kind: "FieldTask", in: path)
            // A manager who is not a member may read the realm and not write its tasks: the realm was found.
            #expect(try await manager.send([patch]).results == ["kind-not-allowed"])
        }
    }

    /// A value that is rejected today may have been stored by an earlier release.
    @Test func storedInvalidFieldDoesNotBlockOtherFields() async throws {
        try await withGateway { fixture in
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let team = UUID()
            try fixture.put(.team, team, #"{"name":"North","backgroundColor":"red"}"#, in: .common)
            let responses = try await manager.send([
                await manager.mutation("patch", team, #"{"name":"South"}"#, kind: "Team", in: "/common"),
                await manager.mutation("patch", team, #"{"backgroundColor":"<svg>"}"#, kind: "Team", in: "/common"),
                await manager.mutation("put", team, #"{"name":"South"}"#, kind: "Team", in: "/common"),
            ])
            #expect(
                responses.results.map { String($0.prefix { $0 != " " }) } == ["accepted", "invalid-field", "accepted"])
            #expect(responses.body.contains("'backgroundColor' must be six hexadecimal digits"))
        }
    }
}
