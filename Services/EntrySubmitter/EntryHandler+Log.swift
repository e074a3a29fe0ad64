import Essentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension EntryHandler {
    /// An entry of which nothing else is to be written, and the number of its decision.
    typealias Unlogged = (looked: EntryLogRule.Looked, key: ObjectKey, decision: Int)

    /// Adds a line to the logs that do not tell their entry's status, of entries that were looked at again and of which
    /// nothing else is to be written.
    func log(
        _ unlogged: [Unlogged], in environment: EnvironmentID, _ writes: inout EntryWrites,
        on connection: inout Connection
    ) throws {
        if unlogged.isEmpty { return }
        let newest = try EntryStore.newestLines(
            connection.run(EntryStore.loadNewestLines(of: unlogged.map(\.key), in: environment)))
        let now = Timestamp.now()
        for item in unlogged {
            if let line = EntryLogRule.line(of: item.looked, newest: newest[item.key], now: now) {
                writes.add(line, to: item.key, decision: item.decision)
            }
        }
    }
}
