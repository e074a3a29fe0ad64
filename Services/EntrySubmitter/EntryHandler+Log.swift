import Essentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

extension EntryHandler {
    /// An entry without writes, and the number of its decision.
    typealias Unchanged = (entry: EntryLogRule.UnchangedEntry, key: ObjectKey, decision: Int)

    /// Appends a line to the logs of retried entries without writes whose newest line differs from the entry's status.
    func log(
        _ unchanged: [Unchanged], in environment: EnvironmentID, _ writes: inout EntryWrites,
        on connection: inout Connection
    ) throws {
        if unchanged.isEmpty { return }
        let newest = try EntryStore.newestLines(
            connection.run(EntryStore.loadNewestLines(of: unchanged.map(\.key), in: environment)))
        let now = Timestamp.now()
        for item in unchanged {
            if let line = EntryLogRule.line(of: item.entry, newest: newest[item.key], now: now) {
                writes.add(line, to: item.key, decision: item.decision)
            }
        }
    }
}
