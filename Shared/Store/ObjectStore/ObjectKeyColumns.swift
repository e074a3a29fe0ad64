import FoundationEssentials
import Model
package import Postgres

/// The keys of many objects as arrays for `unnest`.
package struct ObjectKeyColumns {
    package private(set) var realms = BinaryArray(of: Int32.self)
    package private(set) var kinds = BinaryArray(of: Kind.self)
    package private(set) var ids = BinaryArray(of: UUID.self)

    package init() {}

    /// Appends a key; `nil` appends a row without a key.
    package mutating func append(_ key: ObjectKey?) {
        realms.append(key?.realm)
        kinds.append(key?.kind)
        ids.append(key?.id)
    }
}
