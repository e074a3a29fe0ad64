import Essentials
public import FoundationEssentials
public import Model

/// The items of the device's person that are shared, with their recipients.
///
/// An item is shared while a `SharedItem` without a problem names it. It shows the person's own changes at once, like
/// all of ``DeviceState/contents``.
public struct SharedItemList: Equatable, Sendable {
    /// The ids of the recipients' `Person` objects, by the id of the item.
    public let recipients: [UUID: Set<UUID>]

    /// Lists the shared items of a person.
    ///
    /// - Parameters:
    ///   - own: The person's own realm, `/users/{e-mail}`.
    ///   - contents: The shown objects, see ``DeviceState/contents``.
    public init(realm own: RealmPath, in contents: [RealmPath: RealmContent]) {
        var recipients: [UUID: Set<UUID>] = [:]
        for (object, held) in contents[own] ?? [:] where object.kind == .sharedItem {
            guard let fields = held.json, fields.text(of: "problem") == nil, let item = fields.id(of: "item"),
                let recipient = fields.id(of: "recipient")
            else { continue }
            recipients[item, default: []].insert(recipient)
        }
        self.recipients = recipients
    }

    /// Returns whether an item is shared with any person.
    public func isShared(_ item: UUID) -> Bool { recipients[item] != nil }
}
