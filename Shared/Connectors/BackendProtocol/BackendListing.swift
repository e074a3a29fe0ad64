public import Essentials
import Model

/// Many people's records of some days, read together: what ``TimeBackend/listing(of:from:through:)`` tells.
///
/// It is whole, or it is not there at all: whoever has it may notice that a record is missing in it. A record can be
/// passed over nevertheless, by moving from a day that was not read yet to one that was; so one that is missing is
/// asked for with ``TimeBackend/entries(of:from:through:)`` before it counts as gone.
public struct BackendListing: Equatable, Sendable {
    /// The first of the days that were read; the last one is the one that was asked for.
    public var from: Day
    /// By e-mail address: the records of a person on these days, cancelled and superseded ones left out. Who is not
    /// named has none.
    public var entries: [String: [BackendEntry]]
    /// E-mail addresses of people of whom not everything could be read: the references do not suffice, or a record has
    /// values that make no sense. What is told of them is right, and nothing is concluded from what is not told.
    public var unreadable: Set<String>
    /// Records that cannot be read, to be reported: those of ``unreadable`` people, and those that do not say whose
    /// they are.
    public var unreadableRecords: [UnreadableRecord]

    /// A listing.
    public init(
        from: Day, entries: [String: [BackendEntry]] = [:], unreadable: Set<String> = [],
        unreadableRecords: [UnreadableRecord] = []
    ) {
        self.from = from
        self.entries = entries
        self.unreadable = unreadable
        self.unreadableRecords = unreadableRecords
    }
}
