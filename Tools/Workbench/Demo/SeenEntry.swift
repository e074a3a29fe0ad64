import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// An entry on a device.
struct SeenEntry: Equatable, Sendable {
    let position: Int64
    let status: EntryStatus
    let text: String?
    let durationSeconds: Int?
    let isSubmitRequested: Bool
}

extension SeenEntry {
    /// - Returns: `nil` when the fields are not those of an entry.
    init?(_ object: DeviceObject) {
        guard let fields = try? JSONObject(object.fields) else { return nil }
        let status = fields.text(of: "status") ?? EntryStatus.draft.rawValue
        guard let status = EntryStatus(rawValue: status) else { return nil }
        self.init(
            position: object.position, status: status, text: fields.text(of: "text"),
            durationSeconds: fields.value(of: "durationSeconds").flatMap { Int(String(decoding: $0, as: UTF8.self)) },
            isSubmitRequested: fields.isTrue("submitRequested"))
    }
}
