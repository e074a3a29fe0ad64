import Essentials
import FoundationEssentials
import Model

/// The retention of a person's notices.
enum NoticeRetentionRule {
    /// Limit on notices of one person. The newest are retained.
    static let countMax = 500
    /// Maximum age of a notice, in days.
    static let daysMax = 90

    /// A notice's id and time.
    struct DatedNotice: Equatable {
        let id: UUID
        let timestamp: Timestamp
    }

    /// Returns the retention limit. Older notices are removed.
    static func oldest(now: Timestamp) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - Int64(daysMax) * 86_400_000)
    }

    /// Returns the notices to remove. Of notices with equal times, those with the greater ids are removed, so that the
    /// result does not depend on their order.
    static func surplus(of notices: [DatedNotice], now: Timestamp) -> Set<UUID> {
        let oldest = oldest(now: now)
        let (aged, young) = (
            notices.filter { $0.timestamp < oldest }, notices.filter { $0.timestamp >= oldest }
        )
        let newestFirst = young.sorted { ($1.timestamp, $0.id.text) < ($0.timestamp, $1.id.text) }
        return Set(aged.map(\.id) + newestFirst.dropFirst(countMax).map(\.id))
    }
}
