internal import BackendHTTP
internal import Essentials

/// Detects circular pages, which would otherwise be read for ever.
///
/// It stores a single cursor, because it may be persisted between two pages: that of page 1, 2, 4, 8 and so on (Brent's
/// cycle detection). A cycle is detected before three times the number of different pages are read.
struct PageTrail: Equatable {
    /// The number of pages after the first.
    var count = 0
    /// The cursor to compare with, percent-encoded; initially empty.
    var mark = ""

    /// Advances to the next page.
    ///
    /// - Returns: False if the cursor was seen before.
    mutating func follow(_ cursor: String) -> Bool {
        let cursor = FormFields.encode(cursor)
        if cursor == mark { return false }
        count += 1
        if count & (count - 1) == 0 { mark = cursor }
        return true
    }

    /// Returns the problem of a listing with circular pages.
    static func problem(of path: String, at cursor: String) -> String {
        BackendMessage.truncated("\(path): circular pages, the cursor \(cursor) is repeated")
    }
}
