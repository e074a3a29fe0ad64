import FoundationEssentials
package import Postgres

/// The outcome of a retry.
package struct RetryOutcome: Encodable {
    package enum State: String, Encodable {
        /// The key is no longer deferred.
        case handled
        case deferredAgain = "deferred again"
        /// The key is not processed yet.
        case pending
    }

    package let state: State
    /// The reason of a deferral, or the state of a handled key's object, with an entry's status.
    package let detail: String

    /// - Parameter subject: The subject of the deferred key: its object.
    package static func find(
        _ name: DeferredKeyStore.Name, subject: String, on connection: inout Connection
    ) throws -> RetryOutcome {
        // Reads the object at the time when the key is gone, or later.
        guard let now = try DeferredKeyStore.find(name, on: &connection) else {
            let object = try DeferredKeyStore.objects([(subject, name.environmentID)], on: &connection)[0]
            return RetryOutcome(state: .handled, detail: description(of: object))
        }
        // A key in flight keeps its row until it is processed.
        let isWaiting = now.state == .waiting && now.attempts == 0
        return RetryOutcome(state: isWaiting ? .pending : .deferredAgain, detail: isWaiting ? "" : now.reason)
    }

    /// The object's state, with status and message if it has them.
    private static func description(of object: DeferredKeyStore.Object?) -> String {
        guard let object else { return "the object does not exist" }
        guard let fields = object.fields else { return "the object is deleted" }
        struct Status: Decodable {
            let status: String?
            let message: String?
        }
        let fieldsOfStatus = try? JSONDecoder().decode(Status.self, from: Data(fields.utf8))
        let status = fieldsOfStatus?.status.map { ", status \($0)" } ?? ""
        return "the object is at position \(object.position)\(status)\(fieldsOfStatus?.message.map { ": \($0)" } ?? "")"
    }
}
