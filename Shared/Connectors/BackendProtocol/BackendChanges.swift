/// A page of created and changed records: the result of ``TimeBackend/changes(of:since:)``.
///
/// Following the cursors delivers every change at least once, even if reading is interrupted and resumed from the last
/// cursor. Duplicates are harmless.
///
/// An adapter uses only the back end's own time stamps, never the local clock, and reads the last minutes again each
/// time: time stamps are coarse, two of the back end's clocks may differ, and a record may become visible some time
/// after its time stamp.
public struct BackendChanges: Equatable, Sendable {
    /// A created or changed record with its owner.
    public struct Change: Equatable, Sendable {
        /// The owner's e-mail address.
        public var person: String
        /// The record.
        public var entry: BackendEntry

        /// Creates a change.
        public init(person: String, entry: BackendEntry) {
            self.person = person
            self.entry = entry
        }
    }

    /// Changed records of the requested people; at most a page, so that each page can be committed by itself.
    public var changes: [Change]
    /// The position after this page: an opaque text that holds all state of the adapter.
    public var cursor: String
    /// Whether more changes can be read immediately.
    public var hasMore: Bool
    /// Whether reporting data has changed too. If so, the poller compares all people in full.
    public var haveChoicesChanged: Bool
    /// The reason why reading was interrupted, for an operator. The next run restarts from the beginning.
    public var problem: String?
    /// Records of this page that could not be decoded. Their absence from ``changes`` proves nothing.
    public var unreadable: [UnreadableRecord]

    /// Creates a page of changes.
    public init(
        changes: [Change], cursor: String, hasMore: Bool, haveChoicesChanged: Bool = false, problem: String? = nil,
        unreadable: [UnreadableRecord] = []
    ) {
        self.changes = changes
        self.cursor = cursor
        self.hasMore = hasMore
        self.haveChoicesChanged = haveChoicesChanged
        self.problem = problem
        self.unreadable = unreadable
    }
}
