import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A location must have valid coordinates, since `location-fan-out` displays it to others unchanged.
@Suite(.ownThreads) struct GatewayLocationTests {
    @Test func invalidCoordinatesAreRejected() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            // The first request creates the person.
            try await phone.sync()
            let ana = try fixture.withDatabase { connection in
                try connection.run("SELECT object_id FROM access.person WHERE email = 'ana@example.com'")[0]
                    .value(0, as: UUID.self)
            }
            let cases: [(fields: String, field: String?)] = [
                (#"{"latitude":55.6,"longitude":12.5,"accuracy":4.5}"#, nil),
                (#"{"latitude":-90,"longitude":-180,"accuracy":0}"#, nil),
                (#"{"latitude":90,"longitude":180}"#, nil),
                (#"{"latitude":90.001,"longitude":0}"#, "latitude"),
                (#"{"latitude":-91,"longitude":0}"#, "latitude"),
                (#"{"latitude":0,"longitude":180.5}"#, "longitude"),
                (#"{"latitude":0,"longitude":-181}"#, "longitude"),
                (#"{"latitude":0,"longitude":0,"accuracy":-1}"#, "accuracy"),
                (#"{"latitude":0}"#, "longitude"),
                (#"{"latitude":"north","longitude":0}"#, "latitude"),
            ]
            for (fields, field) in cases {
                let response = try await phone.send([await phone.mutation("put", ana, fields, kind: "Location")])
                let isAccepted = response.results.first?.hasPrefix("accepted") ?? false
                #expect(isAccepted == (field == nil), "\(fields): \(response.body)")
                guard let field else { continue }
                #expect(
                    response.results == ["invalid-field"] && response.body.contains("'\(field)'"), "\(response.body)")
            }
            // A patch is validated as the resulting object.
            let patch = await phone.mutation("patch", ana, #"{"accuracy":-0.5}"#, kind: "Location")
            #expect(try await phone.send([patch]).results == ["invalid-field"])
        }
    }

    /// Two devices of one person: the newest location wins, in any order of arrival.
    @Test func olderLocationDoesNotReplaceANewerOne() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            try await phone.sync()
            let ana = try fixture.withDatabase { connection in
                try connection.run("SELECT object_id FROM access.person")[0].value(0, as: UUID.self)
            }
            let tablet = try await GatewayDevice(fixture, "ana@example.com")
            func put(_ device: GatewayDevice, _ latitude: Int, _ time: String?, _ op: String = "put") async throws
                -> String
            {
                let timestamp = time.map { #","timestamp":"\#($0)""# } ?? ""
                let fields = #"{"latitude":\#(latitude),"longitude":0\#(timestamp)}"#
                return try await device.send([await device.mutation(op, ana, fields, kind: "Location")]).results[0]
            }
            func stored() throws -> String? {
                try fixture.stored("/users/ana@example.com")["Location/\(ana.uuidString.lowercased())"]
                    .flatMap { $0.split(separator: #""latitude":"#).last?.prefix { $0 != "," } }.map(String.init)
            }
            let newest = try await put(phone, 2, "2026-03-30T10:00:00Z")
            // Accepted with the object's position: nothing was changed.
            #expect(try await put(tablet, 1, "2026-03-30T09:59:59.999Z") == newest)
            #expect(try await put(tablet, 1, "2026-03-30T11:00:00+02:00", "patch") == newest)
            #expect(try stored() == "2")
            // The same time, a later one, and none.
            for (latitude, time) in [(3, "2026-03-30T12:00:00+02:00"), (4, "2026-03-30T10:00:01Z"), (5, nil)] {
                #expect(try await put(tablet, latitude, time) != newest)
                #expect(try stored() == "\(latitude)")
            }
            // Both in one request.
            let both = [("2026-03-30T10:00:05Z", 6), ("2026-03-30T10:00:03Z", 7)]
            var mutations: [String] = []
            for (time, latitude) in both {
                let fields = #"{"latitude":\#(latitude),"longitude":0,"timestamp":"\#(time)"}"#
                mutations.append(await phone.mutation("put", ana, fields, kind: "Location"))
            }
            let responses = try await phone.send(mutations).results
            #expect(responses[0] == responses[1] && responses[0].hasPrefix("accepted"))
            #expect(try stored() == "6")
            // A clock that is ahead does not block later locations.
            _ = try await put(phone, 8, "2990-01-01T00:00:00Z")
            _ = try await put(tablet, 9, "2026-03-30T10:00:06Z")
            #expect(try stored() == "9")
        }
    }
}
