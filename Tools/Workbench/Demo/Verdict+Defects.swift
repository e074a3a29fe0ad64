import DeviceClient
import FoundationEssentials
import Model

extension Verdict {
    /// How many of what people have of defects.
    struct Defects: Encodable, Sendable {
        var notices = 0
        var mirrors = 0
        /// What people did from their devices.
        var commands = 0

        var rows: [(name: String, count: Int)] {
            if notices + mirrors + commands == 0 { return [] }
            return [
                ("notices of defects", notices), ("defects mirrored", mirrors),
                ("changes of defects from devices", commands),
            ]
        }
    }

    /// A realm has exactly the notices and mirrors that the tracker's history says.
    ///
    /// - Parameter login: What the person is called there.
    mutating func compare(_ person: String, login: String, _ reading: DefectReading, realm: RealmContent) {
        var told: [DefectReading.Told] = []
        var mirrors = reading.mirrors[login] ?? [:]
        for (id, object) in realm.sorted(by: { $0.key < $1.key }) {
            let fields = Data(object.fields)
            switch id.kind {
            case .notice:
                guard let notice = try? JSONDecoder().decode(Notice.self, from: fields) else {
                    note(person, "\(id)", "cannot be read")
                    continue
                }
                told.append(DefectReading.Told(code: notice.code.rawValue, text: notice.text))
            case .defect:
                guard let mirror = try? JSONDecoder().decode(Defect.self, from: fields) else {
                    note(person, "\(id)", "cannot be read")
                    continue
                }
                defects.mirrors += 1
                guard let wanted = mirrors.removeValue(forKey: mirror.record) else {
                    note(person, "defect \(mirror.record)", "is in the realm, and is not theirs in Compass")
                    continue
                }
                if mirror != wanted {
                    note(person, "defect \(mirror.record)", "is \(mirror) in the realm, \(wanted) in Compass")
                }
            default: break
            }
        }
        for record in mirrors.keys.sorted() { note(person, "defect \(record)", "is not in the realm") }
        defects.notices += told.count
        compare(person, told.sorted(), (reading.notices[login] ?? []).sorted())
    }

    /// What people handed in at their devices was done once, and in its order.
    mutating func compare(_ shift: DefectShift, _ reading: DefectReading) {
        for login in shift.people.map(\.login) {
            let done = reading.actions[shift.headline(of: login)] ?? []
            let wanted = DefectShift.actions.map { "\($0) by \(login)" }
            defects.commands += done.count
            if done != wanted { note(login, "commands", "Compass has \(done), not \(wanted)") }
        }
    }

    /// Both are sorted; what comes twice counts twice.
    private mutating func compare(_ person: String, _ told: [DefectReading.Told], _ wanted: [DefectReading.Told]) {
        for change in told.difference(from: wanted) {
            switch change {
            case .insert(_, let notice, _): note(person, "notice \(notice.code)", "is one too many: \(notice.text)")
            case .remove(_, let notice, _): note(person, "notice \(notice.code)", "did not come: \(notice.text)")
            }
        }
    }
}
