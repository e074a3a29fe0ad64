import BackendContract
import BackendProtocol
import Compass

/// Records and their edit sessions.
extension CompassContract {
    static let editing = [
        Check("a new record has an id before it is saved, and is absent until then") { subject in
            let session = try await subject.client.create(before: .never)
            let before = try await subject.other.record(session.id)
            try subject.expect(before == nil, "the record \(session.id) is there before it was saved")
            let values = subject.values(subject.unique())
            let saved = try await session.commit(values, before: .never)
            try subject.expect(saved.id == session.id, "the record \(session.id) was saved as \(saved.id)")
            let read = try await subject.read(session.id)
            for value in values {
                try subject.expect(read[value.name]?.value == value.value, "\(value) was saved as \(read)")
            }
        },
        Check("fields have types, also in the session of a new record") { subject in
            let session = try await subject.client.create(before: .never)
            try await session.revert()
            for record in [session.record, try await subject.read(try await subject.record())] {
                let untyped = record.fields.filter { $0.type == nil || !$0.isReadable }.map(\.name)
                try subject.expect(untyped.isEmpty, "fields without a type or a value: \(untyped)")
            }
        },
        Check("a reverted new record is absent") { subject in
            let session = try await subject.client.create(before: .never)
            try await session.revert()
            try subject.expect(
                try await subject.client.record(session.id) == nil, "the reverted record \(session.id) is there")
            try await subject.client.revert(session.id)
        },
        Check("a reverted edit changes nothing") { subject in
            let id = try await subject.record()
            let before = try await subject.read(id)
            let session = try await subject.client.edit(id, [FieldValue("Headline", "changed")], before: .never)
            try subject.expect(session.record["Headline"]?.value == "changed", "the session has no value of its own")
            try await session.revert()
            // No session is open, as intended.
            try await session.revert()
            try subject.expect(try await subject.read(id) == before, "the record \(id) was changed")
        },
        Check("a missing mandatory field is rejected with a message, and can be corrected") { subject in
            let session = try await subject.client.create(before: .never)
            let field = "Severity"
            try subject.expect(
                session.record.missing.contains(field), "\(field) is missing, but not among \(session.record.missing)")
            let values = subject.values(subject.unique())
            for wrong in [values.filter { $0.name != field }, values + [FieldValue("Priority", "9-Whenever")]] {
                try await subject.expectRefusal(of: "a record with \(wrong)") {
                    try await session.commit(wrong, before: .never)
                }
            }
            // Rejected values may be in the session; they are overwritten.
            let saved = try await session.commit(values, before: .never)
            try subject.expect(saved.missing.isEmpty, "the saved record misses \(saved.missing)")
        },
        Check("an action makes a field mandatory, and changes the state") { subject in
            let id = try await subject.record()
            let (action, value, state) = ("Open", FieldValue("Owner", "bo"), "Opened")
            let type = try await subject.client.recordType()
            let old = try await subject.read(id)["State"]?.value ?? ""
            try subject.expect(
                type.changes(from: old).contains { $0.name == action && $0.destinationState == state },
                "\(action) does not lead from \(old) to \(state): \(type.actions)")
            let session = try await subject.client.edit(id, action: action, before: .never)
            try subject.expect(
                session.record[value.name]?.requiredness == .mandatory, "\(value.name) is not mandatory for \(action)")
            _ = try await session.commit([value], before: .never)
            let read = try await subject.read(id)
            try subject.expect(
                read["State"]?.value == state && read[value.name]?.value == value.value, "the record is \(read)")
        },
        Check("an unknown action, or one that the state does not allow, is rejected") { subject in
            let id = try await subject.record()
            for action in ["Validate", subject.unique()] {
                try await subject.expectRefusal(of: "the action \(action)") {
                    try await subject.client.edit(id, action: action, before: .never)
                }
            }
            try await subject.expectRefusal(of: "an edit of a record that is not there") {
                try await subject.client.edit("SAMPL99999999", before: .never)
            }
        },
        Check("of two concurrent edits, the first commit succeeds, and the second is rejected") { subject in
            let id = try await subject.record()
            let mine = try await subject.client.edit(id, before: .never)
            let theirs = try await subject.other.edit(id, before: .never)
            _ = try await theirs.commit([FieldValue("Headline", "theirs")], before: .never)
            try await subject.expectRefusal(of: "the second commit") {
                try await mine.commit([FieldValue("Headline", "mine")], before: .never)
            }
            try await mine.revert()
            try subject.expect(
                try await subject.read(id)["Headline"]?.value == "theirs", "the second commit has overwritten the first"
            )
        },
        Check("a new login ends an open session, and begins another") { subject in
            let id = try await subject.record()
            _ = try await subject.client.edit(id, before: .never)
            // As another process of the same account.
            let later = subject.fixture.compass()
            try await later.revert(id)
            let session = try await later.edit(id, before: .never)
            _ = try await session.commit([FieldValue("Headline", "later")], before: .never)
            try subject.expect(try await subject.read(id)["Headline"]?.value == "later", "the record was not changed")
        },
        Check("a list of choices depends on another field's value") { subject in
            let id = try await subject.record()
            let (field, other) = ("Component", "Project")
            let choices = [(value: "Harbour", choice: "Piers"), (value: "Overhead", choice: "Meetings")]
            for (value, choice) in choices {
                let session = try await subject.client.edit(id, [FieldValue(other, value)], before: .never)
                let list = try await session.field(field)?.choices ?? []
                try await session.revert()
                for candidate in choices {
                    let isIn = list.contains(candidate.choice)
                    try subject.expect(
                        isIn == (candidate.choice == choice), "with \(other) \(value), \(field) is one of \(list)")
                }
            }
        },
        Check("a deleted record is absent; deleting it again succeeds") { subject in
            let id = try await subject.record()
            try await subject.client.delete(id, before: .never)
            try await subject.client.delete(id, before: .never)
            try subject.expect(try await subject.client.record(id) == nil, "the deleted record \(id) is there")
            let field = try await subject.client.field("Headline", of: id)
            try subject.expect(field == nil, "the deleted record \(id) has a field")
        },
    ]
}
