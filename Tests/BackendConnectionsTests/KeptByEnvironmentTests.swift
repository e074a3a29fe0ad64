import BackendProtocol
import Model
import Testing

@testable import Access
@testable import BackendConnections
@testable import Secrets
@testable import Tenants

@Suite struct KeptByEnvironmentTests {
    @Test func itIsMadeAnewForOtherSettingsOnly() throws {
        let kept = KeptByEnvironment<String, Int>()
        var count = 0
        func value(_ environment: Int32, _ stored: String) throws -> Int {
            try kept.value(of: EnvironmentID(rawValue: environment), from: stored) { _ throws(MissingBackend) in
                count += 1
                return count
            }
        }
        #expect(try [value(1, "a"), value(1, "a"), value(2, "a"), value(1, "b"), value(1, "b")] == [1, 1, 2, 3, 3])
        #expect(try value(1, "a") == 4, "the newest is kept")
        let nothing = { (_: String) throws(MissingBackend) -> Int in throw MissingBackend("no") }
        #expect(throws: MissingBackend.self) {
            try kept.value(of: EnvironmentID(rawValue: 3), from: "a", make: nothing)
        }
        #expect(try value(3, "a") == 5)
    }
}
