import BackendProtocol
import Model
import Testing

@testable import Access
@testable import BackendConnections
@testable import Secrets
@testable import Tenants

@Suite struct EnvironmentCacheTests {
    @Test func valueIsRecreatedOnlyForChangedSettings() throws {
        let cache = EnvironmentCache<String, Int>()
        var count = 0
        func value(_ environment: Int32, _ stored: String) throws -> Int {
            try cache.value(of: EnvironmentID(rawValue: environment), from: stored) { _ throws(MissingBackend) in
                count += 1
                return count
            }
        }
        #expect(try [value(1, "a"), value(1, "a"), value(2, "a"), value(1, "b"), value(1, "b")] == [1, 1, 2, 3, 3])
        #expect(try value(1, "a") == 4, "only the newest value is cached")
        let failing = { (_: String) throws(MissingBackend) -> Int in throw MissingBackend("no") }
        #expect(throws: MissingBackend.self) {
            try cache.value(of: EnvironmentID(rawValue: 3), from: "a", make: failing)
        }
        #expect(try value(3, "a") == 5)
    }
}
