import Essentials
import FoundationEssentials
import Model

/// Which notices a person keeps.
enum NoticeKeepRule {
    /// Notices of one person, the newest.
    static let countMax = 500
    /// How old a notice gets.
    static let daysMax = 90

    /// A notice, as far as it matters here.
    struct Kept: Equatable {
        let id: UUID
        let timestamp: Timestamp
    }

    /// Notices before this moment go.
    static func oldest(now: Timestamp) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - Int64(daysMax) * 86_400_000)
    }

    /// Those of a person's notices that go. Of equally new ones those go whose ids are greater: which these are is the
    /// same however often it is asked.
    static func surplus(of notices: [Kept], now: Timestamp) -> Set<UUID> {
        let oldest = oldest(now: now)
        let (aged, young) = (
            notices.filter { $0.timestamp < oldest }, notices.filter { $0.timestamp >= oldest }
        )
        let newestFirst = young.sorted { ($1.timestamp, $0.id.text) < ($0.timestamp, $1.id.text) }
        return Set(aged.map(\.id) + newestFirst.dropFirst(countMax).map(\.id))
    }
}
