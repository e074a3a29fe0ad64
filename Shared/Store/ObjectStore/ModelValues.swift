package import Model
import Postgres

/// Kinds are stored as their numbers, `smallint`. Columns that may contain kinds of newer versions are decoded as
/// `Int16`.
extension Kind: PostgresValue {
    package static var typeID: UInt32 { Int16.typeID }
    package static var arrayTypeID: UInt32 { Int16.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) { number.encode(into: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Kind? { Int16.decode(bytes).flatMap(Kind.init(number:)) }
}

/// PostgreSQL numbers environments with an `int`.
extension EnvironmentID: PostgresValue {}
