/// How long a test waits for what is to come before it gives up: far longer than it takes on the slowest machine, since
/// it costs nothing when all is well.
package let patienceMax = Duration.seconds(240)
