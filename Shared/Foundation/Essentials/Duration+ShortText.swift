extension Duration {
    /// The two largest units for display, such as `2h 05m`.
    package var shortText: String {
        let milliseconds = self.milliseconds
        let seconds = milliseconds / 1_000
        func twoDigits(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return switch seconds {
        case ..<1: "\(max(0, milliseconds))ms"
        case ..<60: "\(seconds)s"
        case ..<3_600: "\(seconds / 60)m \(twoDigits(seconds % 60))s"
        case ..<86_400: "\(seconds / 3_600)h \(twoDigits(seconds / 60 % 60))m"
        default: "\(seconds / 86_400)d \(twoDigits(seconds / 3_600 % 24))h"
        }
    }
}
