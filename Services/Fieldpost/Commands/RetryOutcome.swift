import Essentials
import FoundationEssentials
import Glibc
import Model
import Operations
import Postgres
import Realms

/// What came of keys that were tried again.
struct RetryOutcome: Encodable {
    enum State: String, Encodable {
        /// It is not parked any more: what is told of the object is what came of it.
        case handled
        case parkedAgain = "parked again"
        /// Nobody has decided about it yet.
        case onItsWay = "on its way"
    }

    let key: String
    let state: State
    /// Of what is parked again, why; of an entry, its status.
    let detail: String

    /// So many keys are waited for; of more it is not told one by one.
    static let keyCountMax = 20
    private static let pause = Duration.milliseconds(100)

    /// Waits until each is decided about, or the time is over.
    static func wait(
        for rows: [ParkedStore.Row], within: Duration, on connection: inout Connection
    ) throws -> [RetryOutcome] {
        let deadline = ContinuousClock.now + within
        while true {
            let found = try outcomes(of: rows, on: &connection)
            if ContinuousClock.now >= deadline || !found.contains(where: { $0.state == .onItsWay }) { return found }
            poll(nil, 0, Int32(pause.milliseconds))
        }
    }

    private static func outcomes(
        of rows: [ParkedStore.Row], on connection: inout Connection
    ) throws -> [RetryOutcome] {
        let objects = try ParkedStore.objects(rows, on: &connection)
        return try zip(rows, objects).map { row, object in
            let selection = ParkedStore.Selection(keys: [row.key], group: row.group, environment: row.environmentID)
            guard let now = try ParkedStore.load(selection, countMax: 1, on: &connection).first else {
                return RetryOutcome(key: row.key, state: .handled, detail: told(object))
            }
            // One that is taken keeps its row until it is decided about.
            let isWaiting = now.state == .waiting && now.attempts == 0
            return RetryOutcome(
                key: row.key, state: isWaiting ? .onItsWay : .parkedAgain, detail: isWaiting ? "" : now.reason)
        }
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

    /// One line for people.
    var text: String {
        switch state {
        case .handled: "\(key) is handled: \(detail)"
        case .parkedAgain: "\(key) is parked again: \(detail)"
        case .onItsWay: "\(key) is on its way still: fieldpost parked show '\(key)'"
        }
    }
}
