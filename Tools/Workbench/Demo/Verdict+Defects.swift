import DeviceClient
import Model

extension Verdict {
    /// Checks that a realm has exactly the notices and mirrors that follow from the tracker's history.
    ///
    /// - Parameter login: The person's login in Compass.
    mutating func compare(_ person: String, login: String, _ reading: DefectReading, realm: RealmContent) {
        var received: [DefectReading.NoticeContent] = []
        var mirrors = reading.mirrors[login] ?? [:]
        for (id, object) in realm.sorted(by: { $0.key < $1.key }) {
            switch id.kind {
            case .notice:
                guard let notice = object.decoded(as: Notice.self) else {
                    note(person, "\(id)", "cannot be read")
                    continue
                }
                // The others do not follow from the tracker.
                guard [.defectAssigned, .defectModified].contains(notice.code) else { continue }
                received.append(DefectReading.NoticeContent(code: notice.code.rawValue, text: notice.text))
            case .defect:
                guard let mirror = object.decoded(as: Defect.self) else {
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
        // Both lists are sorted, and duplicates count.
        for change in received.sorted().difference(from: (reading.notices[login] ?? []).sorted()) {
            switch change {
            case .insert(_, let notice, _): note(person, "notice \(notice.code)", "is one too many: \(notice.text)")
            case .remove(_, let notice, _): note(person, "notice \(notice.code)", "did not come: \(notice.text)")
            }
        }
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
}
