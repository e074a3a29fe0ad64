import Essentials
import Model
import Postgres
import Realms
import Work

extension EntryHandler {
    /// Adds a line to the logs that do not tell their entry's status, of entries that were looked at again and of which
    /// nothing else is to be written.
    func log(
        _ looked: [EntryLogRule.Looked], in environment: EnvironmentID, _ writes: inout EntryWrites,
        on connection: inout Connection
    ) throws {
        if looked.isEmpty { return }
        let newest = try EntryStore.newestLines(
            connection.run(EntryStore.loadNewestLines(of: looked.map(\.key), in: environment)))
        let now = Timestamp.now()
        for item in looked {
            if let line = EntryLogRule.line(of: item, newest: newest[item.key], now: now) {
                writes.add(line, to: item.key, decision: item.decision)
            }
        }
    }
}
