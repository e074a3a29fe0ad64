import DeviceClient
import FoundationEssentials
import Model

extension Verdict {
    /// Checks that a realm has exactly the notices and mirrors that follow from the tracker's history.
    ///
    /// - Parameter login: The person's login in Compass.
    mutating func compare(_ person: String, login: String, _ reading: DefectReading, realm: RealmContent) {
        var received: [DefectReading.NoticeContent] = []
        var mirrors = reading.mirrors[login] ?? [:]
        for (id, object) in realm.sorted(by: { $0.key < $1.key }) {
            let fields = Data(object.fields)
            switch id.kind {
            case .notice:
                guard let notice = try? JSONDecoder().decode(Notice.self, from: fields) else {
                    note(person, "\(id)", "cannot be read")
                    continue
                }
                received.append(DefectReading.NoticeContent(code: notice.code.rawValue, text: notice.text))
            case .defect:
                guard let mirror = try? JSONDecoder().decode(Defect.self, from: fields) else {
                    note(person, "\(id)", "cannot be read")
                    continue
                }
                counts[.mirrors, default: 0] += 1
                guard let expected = mirrors.removeValue(forKey: mirror.record) else {
                    note(person, "defect \(mirror.record)", "is in the realm, and is not theirs in Compass")
                    continue
                }
                if mirror != expected {
                    note(person, "defect \(mirror.record)", "is \(mirror) in the realm, \(expected) in Compass")
                }
            default: break
            }
        }
        for record in mirrors.keys.sorted() { note(person, "defect \(record)", "is not in the realm") }
        counts[.notices, default: 0] += received.count
        compare(person, received.sorted(), (reading.notices[login] ?? []).sorted())
    }

    /// Checks that each command from a device was executed once and in order.
    mutating func compare(_ shift: DefectShift, _ reading: DefectReading) {
        for login in shift.people.map(\.login) {
            let done = reading.actions[shift.headline(of: login)] ?? []
            let expected = DefectShift.actions.map { "\($0) by \(login)" }
            counts[.commands, default: 0] += done.count
            if done != expected { note(login, "commands", "Compass has \(done), not \(expected)") }
        }
    }

    /// Both lists are sorted, and duplicates count.
    private mutating func compare(
        _ person: String, _ received: [DefectReading.NoticeContent], _ expected: [DefectReading.NoticeContent]
    ) {
        for change in received.difference(from: expected) {
            switch change {
            case .insert(_, let notice, _): note(person, "notice \(notice.code)", "is one too many: \(notice.text)")
            case .remove(_, let notice, _): note(person, "notice \(notice.code)", "did not come: \(notice.text)")
            }
        }
    }
}
