import Essentials
import FoundationEssentials
import Model
import Postgres

/// The recipient's `EndedShare` about an ended share, and the `Notice`s about begun and ended ones, as pure functions.
enum SharingHistory {
    /// Limit of a title in Unicode scalars, because a notice is limited to 4 KB.
    private static let titleScalarsMax = 500
    /// Limit of a name in Unicode scalars.
    private static let nameScalarsMax = 100

    /// Why the copy of a link is removed; `nil` if the link did not end.
    static func reason(of verdict: LinkRule.Verdict) -> EndReason? {
        switch verdict {
        case .deleted: .cancelled
        case .ended(let reason): reason
        case .waiting, .rejected, .shared: nil
        }
    }

    /// Returns the recipient's line about a removed copy; `nil` if they removed it, or if it cannot be read.
    ///
    /// - Parameter copy: The copy's fields before it is removed.
    static func line(
        owner: UUID, _ kind: Kind, _ item: UUID, copy: CanonicalJSON, since: Timestamp?, now: Timestamp,
        _ reason: EndReason
    ) -> EndedShare? {
        guard reason != .removed, let content = content(of: kind, copy) else { return nil }
        var line = EndedShare(
            owner: owner, kind: content.kind, item: item, title: content.title, since: since, endedAt: now,
            reason: reason)
        (line.when, line.durationMinutes) = (content.when, content.durationMinutes)
        return line
    }

    private struct ItemContent {
        let kind: SharedItem.ItemKind
        let title: String
        var when: Timestamp?
        var durationMinutes: Int?
    }

    private static func content(of kind: Kind, _ json: CanonicalJSON) -> ItemContent? {
        guard let kind = SharedItem.ItemKind(rawValue: kind.rawValue), let fields = try? JSONObject(json.bytes) else {
            return nil
        }
        switch kind {
        case .appointment:
            guard let appointment = try? fields.decoded(as: Appointment.self) else { return nil }
            return ItemContent(
                kind: kind, title: appointment.why, when: appointment.when,
                durationMinutes: appointment.durationMinutes)
        case .note:
            guard let note = try? fields.decoded(as: Note.self) else { return nil }
            return ItemContent(kind: kind, title: note.title)
        }
    }

    /// Returns the recipient's notice about an item that is shared with them from now on.
    static func notice(ofShared item: UUID, _ kind: Kind, _ fields: CanonicalJSON, owner name: String?, now: Timestamp)
        -> Notice?
    {
        content(of: kind, fields).map { content in
            let title = content.title.prefix(scalars: titleScalarsMax)
            return Notice(
                about: item, code: .itemShared, text: "\(owner(name)) shares \"\(title)\" with you", timestamp: now)
        }
    }

    /// Returns the notice about a line; `nil` if the end of the whole share has its own.
    static func notice(_ line: EndedShare, id: UUID, owner name: String?, verdict: LinkRule.Verdict) -> Notice? {
        let title = line.title.prefix(scalars: titleScalarsMax)
        let name = owner(name)
        switch verdict {
        case .deleted:
            return Notice(
                about: id, code: .shareCancelled, text: "\(name) no longer shares \"\(title)\" with you",
                timestamp: line.endedAt)
        case .ended(.itemDeleted):
            return Notice(
                about: id, code: .itemDeleted, text: "\(name) has deleted \"\(title)\", which was shared with you",
                timestamp: line.endedAt)
        case .ended(.cancelled), .ended(.removed), .ended(.shareEnded), .waiting, .rejected, .shared: return nil
        }
    }

    /// Returns the recipient's notice about the end of a whole share; `nil` if they ended it.
    static func notice(ofEnded share: UUID, by ender: LinkRule.Ender, owner name: String?, now: Timestamp) -> Notice? {
        switch ender {
        case .recipient: nil
        case .owner, .unknown:
            Notice(
                about: share, code: .shareCancelled, text: "\(owner(name)) no longer shares anything with you",
                timestamp: now)
        }
    }

    private static func owner(_ name: String?) -> String {
        name.map { $0.prefix(scalars: nameScalarsMax) } ?? "The owner"
    }
}
