/// Records that were created or changed in a back end: a part of what ``TimeBackend/changes(of:since:)`` tells.
///
/// Whoever follows the cursors is told every change at least once, however often a reading is broken off and taken up
/// again from the last cursor. A record that is told twice does no harm. An adapter gets there by the back end's own
/// time stamps alone, never by the clock of this machine, and by reading the last minutes again each time: time stamps
/// are coarse, two of the back end's clocks may differ, and a record may become visible a while after its time stamp.
public struct BackendChanges: Equatable, Sendable {
    /// A record that was created or changed.
    public struct Change: Equatable, Sendable {
        /// The e-mail address of the person whose it is.
        public var person: String
        /// The record.
        public var entry: BackendEntry

        /// A change.
        public init(person: String, entry: BackendEntry) {
            self.person = person
            self.entry = entry
        }
    }

    /// Records of the people asked for; of a page at most, so that each part can be made durable by itself.
    public var changes: [Change]
    /// Where to go on. Opaque text of the adapter's, in which all is that it must remember.
    public var cursor: String
    /// Whether there is more to be read now.
    public var hasMore: Bool
    /// Whether what people may report on has changed too: everybody is compared in full then.
    public var haveChoicesChanged: Bool
    /// Why the reading was broken off, to begin anew with the next run: for an operator.
    public var problem: String?
    /// Records of this part that cannot be read, to be reported. Nothing is concluded from them.
    public var unreadable: [UnreadableRecord]

    /// A part of the changes.
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
