/// Reasons for deferred keys that operators can resolve.
package enum DeferralReason {
    /// The environment has no reference to the back end for a person.
    package static let unknownPerson =
        "the person is not registered in the environment: add them with their reference to the back end"
    /// Follows the number of records.
    package static let multipleRecords = "records of the back end have this entry's marker; manual action is needed"
}
