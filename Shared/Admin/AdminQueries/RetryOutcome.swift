import FoundationEssentials
package import Postgres

/// What came of a key that was tried again.
package struct RetryOutcome: Encodable {
    package enum State: String, Encodable {
        /// It is not parked any more: what is told of the object is what came of it.
        case handled
        case parkedAgain = "parked again"
        /// Nobody has decided about it yet.
        case onItsWay = "on its way"
    }

    package let state: State
    /// Of what is parked again, why; of what is handled, how its object is now, with an entry's status.
    package let detail: String

    /// - Parameter subject: Of the key as it was parked: its object.
    package static func find(
        _ name: ParkedStore.Name, subject: String, on connection: inout Connection
    ) throws -> RetryOutcome {
        // The object as it is when the key is gone, or later.
        guard let now = try ParkedStore.find(name, on: &connection) else {
            let object = try ParkedStore.object(subject, in: name.environmentID, on: &connection)
            return RetryOutcome(state: .handled, detail: told(object))
        }
        // One that is taken keeps its row until it is decided about.
        let isWaiting = now.state == .waiting && now.attempts == 0
        return RetryOutcome(state: isWaiting ? .onItsWay : .parkedAgain, detail: isWaiting ? "" : now.reason)
    }

    /// How the object is now, as far as it tells.
    private static func told(_ object: ParkedStore.Object?) -> String {
        guard let object else { return "the object is not there" }
        guard let fields = object.fields else { return "the object is deleted" }
        struct Told: Decodable {
            let status: String?
            let message: String?
        }
        let told = try? JSONDecoder().decode(Told.self, from: Data(fields.utf8))
        let status = told?.status.map { ", status \($0)" } ?? ""
        return "the object is at position \(object.position)\(status)\(told?.message.map { ": \($0)" } ?? "")"
    }
}
