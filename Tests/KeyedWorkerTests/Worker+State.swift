import Kafka
import Model

@testable import KeyedWorker

/// The scheduler's state, for tests.
extension Worker {
    var isIdle: Bool { schedule(\.isIdle) }
    var breakers: [EnvironmentID: CircuitBreaker] { schedule(\.breakers) }
    var heldMessageCount: Int { schedule(\.heldMessageCount) }
    var inFlightCount: Int { schedule(\.inFlight.count) }
    var inFlightMessageCount: Int {
        schedule { $0.inFlight.values.map(\.messages.count).reduce(0, +) }
    }
    var queuedCount: Int { schedule { $0.queues.values.map(\.count).reduce(0, +) } }
    var callsInFlightCount: Int { schedule(\.calls.inFlightCount) }
}
