import Foundation
import HTTP
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// A position is a place on Earth, or it is refused: `location-fan-out` shows it to others as it is.
@Suite(.ownThreads) struct GatewayLocationTests {
    @Test func onlyPlacesOnEarthAreTaken() async throws {
        try await withGateway { fixture in
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            // The first request makes the person.
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
                let answer = try await phone.send([await phone.mutation("put", ana, fields, kind: "Location")])
                let isTaken = answer.results.first?.hasPrefix("accepted") ?? false
                #expect(isTaken == (field == nil), "\(fields): \(answer.body)")
                guard let field else { continue }
                #expect(answer.results == ["invalid-field"] && answer.body.contains("'\(field)'"), "\(answer.body)")
            }
            // A patch is checked as what the object would be.
            let patch = await phone.mutation("patch", ana, #"{"accuracy":-0.5}"#, kind: "Location")
            #expect(try await phone.send([patch]).results == ["invalid-field"])
        }
    }
}
