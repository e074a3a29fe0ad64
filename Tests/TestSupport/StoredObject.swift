package import Model
package import ObjectStore
package import Postgres
import Testing

extension RealmObject {
    /// The object as currently stored; the test fails if it does not exist.
    package static func stored(
        _ key: ObjectKey, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> RealmObject {
        try #require(try byKey(connection.run(load([key], in: environment)))[key])
    }
}
