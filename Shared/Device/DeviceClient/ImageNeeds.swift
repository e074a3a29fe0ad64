import Essentials
public import FoundationEssentials
import Model

/// The images and documents that a device must fetch, send or can delete. People, teams, tasks and objects of own kinds
/// refer to them by blob id.
public struct ImageNeeds: Equatable, Sendable {
    /// Referred to by shown objects but not stored: fetch them with `GET /v1/blobs/{id}`. A blob that does not exist
    /// may be sent later.
    public let missing: Set<UUID>
    /// Stored, and referred to by a mutation without a result: send them with `PUT /v1/blobs/{id}` before the mutation,
    /// because a blob that an object already refers to is not accepted. Sending one again has no effect.
    public let unsent: Set<UUID>
    /// Stored, but referred to neither by shown objects nor by waiting mutations. This includes an image that the
    /// person has just chosen, until the mutation that refers to it is queued.
    public let unneeded: Set<UUID>

    /// Compares the references with the stored images.
    ///
    /// - Parameters:
    ///   - state: The device's objects and waiting mutations.
    ///   - held: The images that the app has stored: fetched ones, and the person's own.
    ///   - types: The types of own kinds, as `fieldpost schema generate swift` declares them. Images of other own kinds
    ///     are not found: none is missing, and those that are stored are unneeded.
    public init(of state: DeviceState, held: Set<UUID>, types: [any OwnObject.Type] = []) {
        let types = Dictionary(types.map { ($0.kindName, $0) }) { first, _ in first }
        func images(of kind: Kind, _ fields: [UInt8]) -> Set<UUID> {
            if let type = types[kind.rawValue] { return type.blobs(in: fields) }
            return Self.image(of: kind, fields).map { [$0] } ?? []
        }
        var shown: Set<UUID> = []
        for (object, stored) in state.contents.values.joined() {
            shown.formUnion(images(of: object.kind, stored.fields))
        }
        var waiting: Set<UUID> = []
        for mutation in state.queue.waiting.map(\.mutation) {
            waiting.formUnion(mutation.fields.map { images(of: mutation.kind, $0) } ?? [])
        }
        missing = shown.subtracting(held)
        unsent = held.intersection(waiting)
        unneeded = held.subtracting(shown).subtracting(waiting)
    }

    /// Returns the name of the field that refers to a kind's image; `nil` if the kind has none.
    private static func field(of kind: Kind) -> String? {
        switch kind {
        case .person: "avatar"
        case .team, .fieldTask, .taskNote: "image"
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .personLookup, .membership, .location, .share, .appointment, .note, .sharedItem, .poll, .seenRecord,
            .notice, .defect, .defectPoll, .defectCommand, .defectAccount, .deliveryChoice, .deletedObject,
            .endedShare, .privateProfile, .writeCheckpoint, .own:
            nil
        }
    }

    private static func image(of kind: Kind, _ fields: [UInt8]) -> UUID? {
        guard let field = field(of: kind) else { return nil }
        return (try? JSONObject(fields))?.id(of: field)
    }
}
