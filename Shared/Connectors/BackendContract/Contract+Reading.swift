internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Checks of listings and reporting data.
extension Contract {
    static let reading = [
        Check("a listing includes both limits and nothing outside them") { subject in
            var days: [String: Int] = [:]
            for offset in 2...5 {
                let submission = subject.submission(on: offset, seconds: 3600)
                _ = try await subject.backend.create(submission)
                days[submission.marker] = offset
            }
            let entries = try await subject.backend.entries(
                of: subject.person, from: subject.day(3), through: subject.day(4))
            let offsets = entries.compactMap { $0.marker.flatMap { days[$0] } }.sorted()
            try subject.expect(
                offsets == [3, 4], "of the days 2, 3, 4 and 5, the listing from 3 through 4 has \(offsets)")
            try subject.expect(
                entries.allSatisfy { $0.day >= subject.day(3) && $0.day <= subject.day(4) },
                "some records are outside the requested days")
        },
        Check("a listing omits deleted entries") { subject in
            let submission = subject.submission(on: 6)
            let id = try await subject.backend.create(submission)
            try await subject.backend.delete(id, of: subject.person, before: .never)
            let entries = try await subject.backend.entries(
                of: subject.person, from: submission.day, through: submission.day)
            try subject.expect(
                !entries.contains { $0.marker == submission.marker }, "a deleted record is still listed")
        },
        Check("people who may register time are listed once and not as barred", where: \.supportsPeopleListing) {
            subject in
            let people = try await subject.backend.people()
            for person in [subject.person, subject.harness.otherPerson] {
                let matches = people.filter { $0.reference == person.reference }
                try subject.expect(
                    matches.count == 1, "\(person.email) is listed \(matches.count) times by their reference")
                try subject.expect(matches.allSatisfy { !$0.isBarred }, "\(person.email) is listed as barred")
                let emails = matches.compactMap { $0.email.map(EmailAddress.lowered) }
                try subject.expect(emails == [person.email], "\(person.email) is listed with the address \(emails)")
            }
            let references = people.map(\.reference)
            try subject.expect(Set(references).count == references.count, "a person is listed twice")
            try subject.expect(references.allSatisfy { !$0.isEmpty }, "a person is listed without a reference")
        },
        Check("reporting data is stable while nothing changes") { subject in
            let first = try await subject.backend.reportingData(of: subject.person)
            let second = try await subject.backend.reportingData(of: subject.person)
            try subject.expect(first == second, "two calls return different nodes, contexts or templates")
        },
        Check("reporting data is consistent") { subject in
            let data = try await subject.backend.reportingData(of: subject.person)
            var objects = ReportingObjects()
            var ids: Set<UUID> = []
            for node in data.nodes {
                try subject.expect(
                    node.fields.parent.map(ids.contains) ?? true, "the node \(node.fields.name) precedes its parent")
                try subject.expect(ids.insert(node.id).inserted, "the id \(node.id) occurs twice")
                objects.nodes[node.id] = node.fields
            }
            for context in data.contexts { objects.contexts[context.id] = context.fields }
            for template in data.templates { objects.templates[template.id] = template.fields }
            let dangling = objects.danglingReferences
            try subject.expect(dangling.isEmpty, "references to missing objects: \(dangling)")
            try subject.expect(!data.templates.isEmpty, "there is no template, so no entry can be registered")
        },
        Check("an entry refers to nodes of the reporting data") { subject in
            let data = try await subject.backend.reportingData(of: subject.person)
            for (context, reference) in subject.harness.references {
                try subject.expect(
                    data.contexts.contains { $0.fields.name == context }, "there is no context \(context)")
                try subject.expect(
                    data.nodes.contains { $0.fields.referenceId == reference }, "there is no node \(reference)")
            }
            let id = try await subject.backend.create(subject.submission())
            let entry = try await subject.readBack(id)
            try subject.expect(
                !data.selections(for: entry.references).isEmpty,
                "a record's references \(entry.references) resolve to no node")
        },
    ]
}
