package import Model
import Postgres

/// Kinds are stored as their numbers, `smallint`. A column with the number of a kind that this program may not know is
/// read as `Int16`.
extension Kind: PostgresValue {
    package static var typeID: UInt32 { Int16.typeID }
    package static var arrayTypeID: UInt32 { Int16.arrayTypeID }
    package func encode(into bytes: inout [UInt8]) { number.encode(into: &bytes) }
    package static func decode(_ bytes: RawSpan) -> Kind? { Int16.decode(bytes).flatMap(Kind.init(number:)) }
}
