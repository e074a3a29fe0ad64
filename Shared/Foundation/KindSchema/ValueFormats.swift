import Essentials
import FoundationEssentials

extension ValueSchema.Format {
    /// A value for messages.
    var example: String {
        switch self {
        case .date: "2026-11-27"
        case .dateTime: "2026-11-27T18:49:06Z"
        case .uuid: "7d178aa3-aa03-4d94-a051-d5e12b057b4e"
        }
    }

    /// Whether a text has the format. Leap seconds are refused: PostgreSQL cannot store them.
    func accepts(_ text: String) -> Bool {
        switch self {
        case .date: Day(text) != nil
        case .dateTime: Timestamp(text) != nil
        case .uuid: UUID(ascii: text) != nil
        }
    }
}
