internal import BackendHTTP

/// Notices when the cursors of a listing's pages lead back to one that was read: such a listing would be read for ever.
///
/// It remembers one cursor only, since it may be stored between two pages: that of page 1, 2, 4, 8 and so on (Brent's
/// way of finding a cycle). A circle is found before three times as many pages are read as there are different ones.
struct PageTrail: Equatable {
    /// Pages after the first that were asked for.
    var count = 0
    /// The cursor that is looked out for, percent-encoded; empty before the first.
    var mark = ""

    /// Goes on to the next page.
    ///
    /// - Returns: False when its cursor was there before.
    mutating func follow(_ cursor: String) -> Bool {
        let cursor = URLText.escape(cursor)
        if cursor == mark { return false }
        count += 1
        if count & (count - 1) == 0 { mark = cursor }
        return true
    }

    /// What is wrong with a listing whose pages do not end.
    static func problem(of path: String, at cursor: String) -> String {
        BackendMessage.bounded("\(path): the pages go in a circle, the cursor \(cursor) comes again")
    }
}
