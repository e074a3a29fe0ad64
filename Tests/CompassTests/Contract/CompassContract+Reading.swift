import BackendContract
import BackendProtocol
import Compass

/// Workspaces, queries and their results.
extension CompassContract {
    static let reading = [
        Check("the server returns its repositories, and the database its record types") { subject in
            let settings = subject.client.settings
            let repositories = try await subject.client.repositories(withDatabases: true)
            let own = repositories.first { $0.name == settings.repository }
            try subject.expect(own != nil, "\(repositories) has no \(settings.repository)")
            let database = try await subject.client.database()
            try subject.expect(
                database.recordTypesForSubmit.contains(settings.recordType),
                "\(database) has no records of the type \(settings.recordType)")
        },
        Check("a folder is found by its path, and an unknown path returns nothing") { subject in
            let folder = try await subject.personalFolder()
            try subject.expect(
                try await subject.client.folder(folder.id) == folder, "the folder \(folder.id) is another one by its id"
            )
            let none = try await subject.client.folder(at: [Folder.personalQueries, subject.unique()])
            try subject.expect(none == nil, "a folder that is not there is \(String(describing: none))")
        },
        Check("a query is read as created until it is deleted; deleting it again succeeds") { subject in
            let filter = QueryFilter(
                .all, [.init("Owner", .equals, [QueryFilter.currentUser])],
                children: [
                    QueryFilter(.any, [.init("State", .differs, ["Closed"]), .init("id", .isOneOf, ["x", "y"])])
                ])
            let desired = try await subject.definition([.init("id"), .init("Headline", sort: .descending)], filter)
            let made = try await subject.client.create(desired)
            let id = made.id ?? ""
            let read = try await subject.client.query(id)
            try subject.expect(read == made, "the query is \(String(describing: read)), not \(made)")
            var expected = desired
            (expected.id, expected.columns) = (id, made.columns)
            try subject.expect(made == expected, "the query is \(made), not \(expected)")
            let folder = try await subject.personalFolder()
            try subject.expect(
                folder.items.contains { $0.id == id && $0.isQuery && $0.name == desired.name },
                "the folder \(folder) has no query \(id)")
            try subject.expect(
                try await subject.client.queries(inFolder: folder.id)?.contains { $0.id == id } == true,
                "the queries of the folder are without \(id)")
            try await subject.client.deleteQuery(id)
            try await subject.client.deleteQuery(id)
            try subject.expect(try await subject.client.query(id) == nil, "the query \(id) is there after its deletion")
        },
        Check("a duplicate name in a folder, and an unknown field, are rejected") { subject in
            try await subject.withQuery([.init("id")], QueryFilter()) { query in
                try await subject.expectRefusal(of: "a second query of the same name") {
                    try await subject.client.create(query)
                }
            }
            let wrong = try await subject.definition([.init("id"), .init("no_such_field")], QueryFilter())
            try await subject.expectRefusal(of: "a query of a field that is not there") {
                try await subject.client.create(wrong)
            }
        },
        Check("values are found by the names of their columns") { subject in
            let headline = subject.unique()
            let id = try await subject.record(headline)
            let rows = try await subject.rows(headlines: [headline], ["Headline", "Submitter", "id"])
            try subject.expect(rows.count == 1, "\(rows.count) rows of one record")
            try subject.expect(
                rows.first?["id"] == id && rows.first?["Headline"] == headline
                    && rows.first?["Submitter"] == "ana", "the row is \(rows)")
            try subject.expect(rows.first?["Owner_of_nothing"] == nil, "a column that is not there has a value")
        },
        Check("all pages together contain each row once") { subject in
            let headlines = (0..<5).map { _ in subject.unique() }
            for headline in headlines { _ = try await subject.record(headline) }
            for pageRowsMax in [1, 2, 5, 6] {
                let client = subject.fixture.compass { $0.pageRowsMax = pageRowsMax }
                let filter = QueryFilter(.all, [.init("Headline", .isOneOf, headlines)])
                let rows = try await subject.withQuery([.init("Headline"), .init("id")], filter) {
                    try await client.rows(of: $0)
                }
                let found = rows.compactMap { $0["Headline"] }
                try subject.expect(
                    found.sorted() == headlines.sorted(),
                    "with \(pageRowsMax) rows a page, \(found.count) rows of \(headlines.count) records")
            }
        },
        Check("rows are in the requested order") { subject in
            let headlines = (0..<4).map { _ in subject.unique() }
            for headline in headlines { _ = try await subject.record(headline) }
            let filter = QueryFilter(.all, [.init("Headline", .isOneOf, headlines)])
            let rows = try await subject.withQuery([.init("id"), .init("Headline", sort: .descending)], filter) {
                try await subject.client.rows(of: $0)
            }
            try subject.expect(
                rows.compactMap { $0["Headline"] } == headlines.sorted(by: >), "the rows are \(rows)")
        },
        Check("the current user is the caller") { subject in
            let headline = subject.unique()
            _ = try await subject.record(headline)
            let own = [QueryFilter.Condition("Submitter", .equals, [QueryFilter.currentUser])]
            let others = [QueryFilter.Condition("Submitter", .differs, [QueryFilter.currentUser])]
            let mine = try await subject.rows(headlines: [headline], ["id"], and: own)
            let notMine = try await subject.rows(headlines: [headline], ["id"], and: others)
            try subject.expect(
                mine.count == 1 && notMine.isEmpty, "\(mine.count) rows of one's own, \(notMine.count) of others")
        },
        Check("each change is a row with its user and time") { subject in
            let headline = subject.unique()
            let id = try await subject.record(headline)
            let columns = ["id", "history.action_name", "history.user_name", "history.action_timestamp"]
            let first = try await subject.rows(headlines: [headline], columns)
            let time = first.first?["history.action_timestamp"].flatMap(CompassTime.init)
            guard first.count == 1, let time else { throw Contract.Failure("the history of a new record is \(first)") }
            let session = try await subject.other.edit(id, action: "Modify", before: .never)
            _ = try await session.commit([], before: .never)
            let since = QueryFilter.Condition(
                "history.action_timestamp", .isAfter, [time.adding(seconds: -1).description])
            let rows = try await subject.rows(headlines: [headline], columns, and: [since])
            try subject.expect(rows.count == 2, "\(rows.count) rows of two changes")
            let theirs = QueryFilter.Condition("history.user_name", .differs, [QueryFilter.currentUser])
            let others = try await subject.rows(headlines: [headline], columns, and: [since, theirs])
            try subject.expect(
                others.map { $0["history.action_name"] } == ["Modify"], "what others did is \(others)")
            let later = QueryFilter.Condition(
                "history.action_timestamp", .isAfter, [time.adding(seconds: 86_400 * 3).description])
            let none = try await subject.rows(headlines: [headline], columns, and: [later])
            try subject.expect(none.isEmpty, "what will be done in three days is \(none)")
        },
    ]
}
