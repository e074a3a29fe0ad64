import BackendProtocol
import Compass
import TestSupport
import Testing

/// The fifteen calls of the vendor's sample app, each with the document's own example: the app's request returns a
/// response that its models decode, and the client's call returns the same values.
@Suite(.ownThreads) struct DocumentedCallTests {
    typealias Fixture = CompassFixture
    static let database = CompassFixture.database
    static let records = database + "/records/defect"

    @Test func getRepos() async throws {
        try await Fixture.run { fixture in
            let repos = try await fixture.call("GET", "/repos", as: [SampleApp.Repo].self)
            #expect(repos.map(\.name) == ["CCMRepo"])
            let compass = fixture.compass()
            let names = try await compass.repositories()
            #expect(names.map(\.name) == ["CCMRepo"] && names.first?.databases == [])
            #expect(try await compass.repositories(withDatabases: true).first?.databases == ["SAMPL"])
            #expect(try await fixture.stats()["logins"] == nil, "no login is needed to list them")
        }
    }

    @Test func login() async throws {
        try await Fixture.run { fixture in
            let login = #"{"username": "ana", "password": "secret-of-ana", "repo": "CCMRepo", "db": "SAMPL"}"#
            let token = try await fixture.call(
                "POST", "/authenticate", login, status: 201, as: SampleApp.AuthToken.self)
            #expect(token.token.split(separator: ".").count == 3)
            let wrong = login.replacing("secret-of-ana", with: "guess")
            let error = try await fixture.call(
                "POST", "/authenticate", wrong, status: 401, as: SampleApp.ErrorResponse.self)
            #expect(error.status == 401 && !error.message.isEmpty)
            let nowhere = login.replacing("SAMPL", with: "OTHER")
            _ = try await fixture.call(
                "POST", "/authenticate", nowhere, status: 400, as: SampleApp.ErrorResponse.self)
            try await fixture.compass().logIn()
        }
    }

    @Test func logout() async throws {
        try await Fixture.run { fixture in
            let token = try await fixture.token()
            #expect(try await fixture.send("GET", Self.database, token: token).status == 200)
            #expect(try await fixture.send("POST", "/authenticate/logoff", token: token, "").status == 204)
            #expect(try await fixture.send("GET", Self.database, token: token).status == 401)
            let compass = fixture.compass()
            try await compass.logIn()
            try await compass.logOff()
            #expect(try await fixture.stats()["logoffs"] == 2)
        }
    }

    @Test func getFolders() async throws {
        try await Fixture.run { fixture in
            let folders = try await fixture.call(
                "GET", Self.database + "/workspace/folders", token: try await fixture.token(),
                as: [SampleApp.Folder].self)
            #expect(folders.map(\.name).sorted() == ["Personal Queries", "Public Queries"])
            let roots = try await fixture.compass().folders()
            #expect(roots.map(\.id) == folders.map(\.dbId) && roots.map(\.name) == folders.map(\.name))
        }
    }

    @Test func createQuery() async throws {
        try await Fixture.run { fixture in
            let token = try await fixture.token()
            let folder = try await fixture.personalFolder(token).dbId
            let query = try await fixture.call(
                "POST", Self.database + "/workspace/queryDefs", token: token, SampleApp.assignedToMe(in: folder),
                status: 201, as: SampleApp.QueryDef.self)
            #expect(query.name == "Assigned To Me" && query.dbIdParent == folder)
            #expect(try await fixture.personalFolder(token).children.map(\.name) == ["Assigned To Me"])
            let compass = fixture.compass()
            let read = try #require(try await compass.query(query.dbId))
            #expect(read.columns.first { $0.field == "Submit_Date" }?.sort == .descending)
            #expect(read.filter == QueryFilter(.all, [.init("Owner", .equals, [QueryFilter.currentUser])]))
            // The client creates the same query.
            var copy = read
            copy.name = "copy"
            let made = try await compass.create(copy)
            copy.id = made.id
            #expect(made == copy && made.id != read.id)
        }
    }

    @Test func createResultSetAndGetResultSet() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass, Fixture.values + [FieldValue("Owner", "ana")])
            _ = try await fixture.record(fixture.compass(as: Fixture.bo))
            let token = try await fixture.token()
            let folder = try await fixture.personalFolder(token).dbId
            for (document, count) in [(SampleApp.assignedToMe(in: folder), 7), (SampleApp.reportedByMe(in: folder), 6)]
            {
                let query = try await fixture.call(
                    "POST", Self.database + "/workspace/queryDefs", token: token, document, status: 201,
                    as: SampleApp.QueryDef.self)
                let path = Self.database + "/workspace/queryDefs/\(query.dbId)/resultsets"
                let options =
                    #"{"resultSetOptions": {"pageSize": 5, "enableRecordCount": true, "maxResultSetRows": 2}}"#
                for body in [#"{"pageSize": "999"}"#, #"{"pageSize": 999}"#, options] {
                    let set = try await fixture.call(
                        "POST", path, token: token, body, status: 201, as: SampleApp.ResultSet.self)
                    let page = try await fixture.call(
                        "GET", path + "/" + set.result_set_id, token: token, as: SampleApp.ResultSetPage.self)
                    #expect(page.rows.map(\.values.count) == [count])
                    #expect(page.rows.first?.values.first == id)
                }
                let rows = try await compass.rows(of: try #require(try await compass.query(query.dbId)))
                #expect(rows.map { $0["id"] } == [id] && rows.map { $0["Headline"] } == ["Ægir's \"crane\""])
            }
        }
    }

    @Test func deleteQuery() async throws {
        try await Fixture.run { fixture in
            let token = try await fixture.token()
            let folder = try await fixture.personalFolder(token).dbId
            let path = Self.database + "/workspace/queryDefs"
            let document = SampleApp.modifiedDefect(since: "2020-07-01 12:00:00", in: folder)
            let first = try await fixture.call(
                "POST", path, token: token, document, status: 201, as: SampleApp.QueryDef.self)
            #expect(try await fixture.send("DELETE", path + "/" + first.dbId, token: token).status == 204)
            let second = try await fixture.call(
                "POST", path, token: token, document, status: 201, as: SampleApp.QueryDef.self)
            try await fixture.compass().deleteQuery(second.dbId)
            #expect(try await fixture.send("GET", path + "/" + second.dbId, token: token).status == 404)
        }
    }

    @Test func createRecordAndModifyRecord() async throws {
        try await Fixture.run { fixture in
            let token = try await fixture.token()
            let new = try await fixture.call(
                "POST", Self.records + "/?operation=Edit", token: token, "{}", status: 201, as: SampleApp.Record.self)
            #expect(new.fields[7].value == "SAMPL00000001", "where the app reads it")
            #expect(new.fields.first { $0.name == "Headline" }?.requiredness == "MANDATORY")
            let record = Self.records + "/SAMPL00000001"
            let body = #"{"fields": [{"name": "Headline", "value": "A"}, {"name": "Severity", "value": "2-Major"}]}"#
            let saved = try await fixture.call(
                "PATCH", record + "?operation=Commit", token: token, body, as: SampleApp.Record.self)
            #expect(saved.fields[5].value == "A" && saved.fields[24].value == "Submitted")
            _ = try await fixture.call(
                "PATCH", record + "?operation=Edit&actionName=Modify", token: token, "{}", as: SampleApp.Record.self)
            _ = try await fixture.call(
                "PATCH", record + "?operation=Commit&actionName=Modify", token: token,
                #"{"fields": [{"name": "Headline", "value": "B"}]}"#, as: SampleApp.Record.self)
            _ = try await fixture.call(
                "PATCH", record + "?operation=Edit", token: token, "{}", as: SampleApp.Record.self)
            _ = try await fixture.call(
                "PATCH", record + "?operation=Revert", token: token, "{}", as: SampleApp.Record.self)

            let compass = fixture.compass()
            let session = try await compass.edit("SAMPL00000001", before: .never)
            #expect(session.record["Headline"]?.value == "B")
            let changed = try await session.commit([FieldValue("Headline", "C")], before: .never)
            #expect(changed["Headline"]?.value == "C" && changed["Severity"]?.value == "2-Major")
        }
    }

    @Test func getRecordAndGetField() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let id = try await fixture.record(compass)
            let token = try await fixture.token()
            let record = try await fixture.call(
                "GET", Self.records + "/" + id, token: token, as: SampleApp.Record.self)
            #expect(record.fields[5].value == "Ægir's \"crane\"" && record.fields[24].value == "Submitted")
            let field = try await fixture.call(
                "GET", Self.records + "/\(id)/fields/Severity", token: token, as: SampleApp.Field.self)
            #expect(field.fieldChoiceList?.first == "1-Critical" && field.requiredness == "MANDATORY")
            let read = try #require(try await compass.record(id))
            #expect(read.fields.map(\.name) == record.fields.map(\.name))
            #expect(read.fields.map(\.value) == record.fields.map(\.value))
            #expect(try await compass.field("Severity", of: id)?.choices == field.fieldChoiceList)
            #expect(try await compass.field("Nothing", of: id) == nil)
        }
    }

    @Test func getRecordType() async throws {
        try await Fixture.run { fixture in
            let type = try await fixture.call(
                "GET", Self.records, token: try await fixture.token(), as: SampleApp.RecordType.self)
            let changes = type.actions.filter {
                $0.actionType == "_CHANGE_STATE" && $0.actionSourceStateNames.contains("Submitted")
            }
            #expect(changes.map(\.name) == ["Assign", "Open", "Postpone"])
            let read = try await fixture.compass().recordType()
            #expect(read.changes(from: "Submitted").map(\.name) == changes.map(\.name))
            #expect(read.changes(from: "Submitted").map(\.destinationState) == ["Assigned", "Opened", "Postponed"])
        }
    }

    @Test func deleteRecord() async throws {
        try await Fixture.run { fixture in
            let compass = fixture.compass()
            let (first, second) = (try await fixture.record(compass), try await fixture.record(compass))
            let token = try await fixture.token()
            let path = Self.records + "/\(first)?actionName=Delete"
            #expect(try await fixture.send("DELETE", path, token: token).status == 204)
            let error = try await fixture.call(
                "DELETE", path, token: token, status: 404, as: SampleApp.ErrorResponse.self)
            #expect(error.status == 404)
            try await compass.delete(second, before: .never)
            #expect(try await compass.record(second) == nil)
        }
    }
}
