/// Reasons for deferred keys that operators can resolve.
package enum DeferralReason {
    /// The environment has no reference to the back end for a person.
    package static let unknownPerson =
        "the person is not registered in the environment: add them with their reference to the back end"
    /// Follows the number of records, and precedes their ids.
    package static let multipleRecords = "records of the back end have this entry's marker; manual action is needed"

    /// Maximum number of records whose ids a reason names.
    private static let recordsNamedMax = 10

    /// Returns the reason for an entry with several records.
    package static func withRecords(_ ids: [String]) -> String {
        let names = ids.prefix(recordsNamedMax).joined(separator: ", ")
        return "\(ids.count) \(multipleRecords): \(names)\(ids.count > recordsNamedMax ? ", …" : "")"
    }
}
