import Essentials
public import FoundationEssentials
import Model

/// What a device has to do about images: people, teams and tasks name them by the ids of their blobs.
public struct ImageNeeds: Equatable, Sendable {
    /// Named by what the device shows, and not held: to be fetched with `GET /v1/blobs/{id}`. One that is not there may
    /// be later.
    public let missing: Set<UUID>
    /// Held, and named by a mutation that has no answer yet: to be sent with `PUT /v1/blobs/{id}` before the mutation
    /// is, since under an id that an object names already nothing is taken. To send one again is harmless.
    public let unsent: Set<UUID>
    /// Held, and named neither by what the device shows nor by what waits to be sent. So is one that the person has
    /// chosen just now, until the mutation that names it is queued.
    public let unneeded: Set<UUID>

    /// Compares what is named with what is held.
    ///
    /// - Parameters:
    ///   - state: What the device shows, and what waits to be sent.
    ///   - held: The images that the app holds: fetched ones, and the person's own.
    public init(of state: DeviceState, held: Set<UUID>) {
        var shown: Set<UUID> = []
        for (object, there) in state.contents.values.joined() {
            guard let image = Self.image(of: object.kind, there.fields) else { continue }
            shown.insert(image)
        }
        let waiting = state.queue.waiting.compactMap { item in
            item.mutation.fields.flatMap { Self.image(of: item.mutation.kind, $0) }
        }
        missing = shown.subtracting(held)
        unsent = held.intersection(waiting)
        unneeded = held.subtracting(shown).subtracting(waiting)
    }

    /// The name of the field that names a kind's image; `nil`: its objects have none.
    private static func field(of kind: Kind) -> String? {
        switch kind {
        case .person: "avatar"
        case .team, .fieldTask: "image"
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .personLookup, .membership, .location, .share, .appointment, .note, .sharedItem, .poll, .seenRecord,
            .notice, .defect, .defectPoll, .defectCommand, .defectAccount, .deliveryChoice:
            nil
        }
    }

    private static func image(of kind: Kind, _ fields: [UInt8]) -> UUID? {
        guard let field = field(of: kind) else { return nil }
        return (try? JSONObject(fields))?.id(of: field)
    }
}
