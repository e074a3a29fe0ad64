/// Reasons for which keys are parked that operators are told the remedy of.
package enum ParkedReason {
    /// The environment's people have no reference of somebody to the back end.
    package static let unknownPerson =
        "this person is not among the environment's people: add them with their reference to the back end"
    /// How many there are comes before it.
    package static let severalRecords = "records of the back end carry this entry's marker; a person must look"
}
