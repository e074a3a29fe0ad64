/// The maximum time that a test waits for a condition: far longer than necessary on the slowest machine, because a
/// passing test does not use it up.
package let patienceMax = Duration.seconds(240)
