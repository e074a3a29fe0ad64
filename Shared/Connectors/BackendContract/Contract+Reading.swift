internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Listings and reporting data.
extension Contract {
    static let reading = [
        Check("a listing holds both its bounds, and nothing beyond") { subject in
            var days: [String: Int] = [:]
            for offset in 2...5 {
                let submission = subject.submission(on: offset, seconds: 3600)
                _ = try await subject.backend.create(submission)
                days[submission.marker] = offset
            }
            let entries = try await subject.backend.entries(
                of: subject.person, from: subject.day(3), through: subject.day(4))
            let found = entries.compactMap { $0.marker.flatMap { days[$0] } }.sorted()
            try subject.expect(found == [3, 4], "of the days 2, 3, 4 and 5, those from 3 through 4 are \(found)")
            try subject.expect(
                entries.allSatisfy { $0.day >= subject.day(3) && $0.day <= subject.day(4) },
                "some records are not within the days asked for")
        },
        Check("a listing holds no deleted entries") { subject in
            let submission = subject.submission(on: 6)
            let id = try await subject.backend.create(submission)
            try await subject.backend.delete(id, of: subject.person, before: .never)
            let entries = try await subject.backend.entries(
                of: subject.person, from: submission.day, through: submission.day)
            try subject.expect(
                !entries.contains { $0.marker == submission.marker }, "a deleted record is still listed")
        },
        Check("the people who may register are told once each, and not as barred", where: \.tellsPeople) { subject in
            let people = try await subject.backend.people()
            for person in [subject.person, subject.harness.otherPerson] {
                let told = people.filter { $0.reference == person.reference }
                try subject.expect(told.count == 1, "\(person.email) is told \(told.count) times by their reference")
                try subject.expect(told.allSatisfy { !$0.isBarred }, "\(person.email) is told as barred")
                let emails = told.compactMap { $0.email.map(EmailAddress.lowered) }
                try subject.expect(emails == [person.email], "\(person.email) is told with the address \(emails)")
            }
            let references = people.map(\.reference)
            try subject.expect(Set(references).count == references.count, "somebody is told twice")
            try subject.expect(references.allSatisfy { !$0.isEmpty }, "somebody is told without a reference")
        },
        Check("reporting data is the same when nothing has changed") { subject in
            let first = try await subject.backend.reportingData(of: subject.person)
            let second = try await subject.backend.reportingData(of: subject.person)
            try subject.expect(first == second, "two calls give different nodes, contexts or templates")
        },
        Check("reporting data hangs together") { subject in
            let data = try await subject.backend.reportingData(of: subject.person)
            var objects = ReportingObjects()
            var known: Set<UUID> = []
            for node in data.nodes {
                try subject.expect(
                    node.fields.parent.map(known.contains) ?? true, "the node \(node.fields.name) is before its parent")
                try subject.expect(known.insert(node.id).inserted, "the id \(node.id) is there twice")
                objects.nodes[node.id] = node.fields
            }
            for context in data.contexts { objects.contexts[context.id] = context.fields }
            for template in data.templates { objects.templates[template.id] = template.fields }
            let dangling = objects.danglingReferences
            try subject.expect(dangling.isEmpty, "references to what is not there: \(dangling)")
            try subject.expect(!data.templates.isEmpty, "there is no template, so nothing can be registered")
        },
        Check("what can be chosen is what an entry refers to") { subject in
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
                "a record's references \(entry.references) lead to no node")
        },
    ]
}
