import BackendContract
import BackendProtocol
import Compass
import TestSupport
import Testing

@testable import Sandbox

/// Named checks of the client against the emulator, as `BackendContract` for time back ends.
enum CompassContract {
    static let checks = reading + editing + failing

    struct Check: Sendable, CustomStringConvertible {
        /// The checked property, as a sentence.
        let description: String
        let body: @Sendable (CompassSubject) async throws -> Void

        init(_ description: String, _ body: @escaping @Sendable (CompassSubject) async throws -> Void) {
            self.description = description
            self.body = body
        }
    }
}

@Suite(.ownThreads) struct CompassContractTests {
    @Test(arguments: CompassContract.checks) func emulatorMeetsTheContract(check: CompassContract.Check) async throws {
        try await CompassFixture.run { fixture in
            try await check.body(CompassSubject(fixture: fixture))
            #expect(fixture.system.withState { $0.workspace.queries.isEmpty }, "no query is left")
            #expect(fixture.system.withState { $0.sessions.all.isEmpty }, "no edit session is left")
        }
    }
}

/// The context of a check.
struct CompassSubject: Sendable {
    let fixture: CompassFixture
    let client: CompassClient

    init(fixture: CompassFixture) {
        self.fixture = fixture
        client = fixture.compass()
    }

    var other: CompassClient { fixture.compass(as: CompassFixture.bo) }

    /// A value that no other check has written.
    func unique() -> String { "Contract \(UInt64.random(in: .min ... .max))" }

    /// The values of a record that can be saved.
    func values(_ headline: String) -> [FieldValue] {
        [FieldValue("Headline", headline), FieldValue("Severity", "3-Average")]
    }

    /// A record that is saved.
    func record(_ headline: String? = nil) async throws -> String {
        let session = try await client.create(before: .never)
        return try await session.commit(values(headline ?? unique()), before: .never).id
    }

    func read(_ id: String) async throws -> Record {
        guard let record = try await client.record(id) else {
            throw Contract.Failure("the record \(id) is absent, though it was just saved")
        }
        return record
    }

    // MARK: Queries

    func personalFolder() async throws -> Folder {
        guard let folder = try await client.folder(at: [Folder.personalQueries]) else {
            throw Contract.Failure("there is no folder \(Folder.personalQueries)")
        }
        return folder
    }

    /// Makes a query, lends it, and removes it.
    func withQuery<Answer>(
        _ columns: [QueryDefinition.Column], _ filter: QueryFilter, _ body: (QueryDefinition) async throws -> Answer
    ) async throws -> Answer {
        let query = try await client.create(try await definition(columns, filter))
        do {
            let response = try await body(query)
            try await client.deleteQuery(query.id ?? "")
            return response
        } catch {
            try? await fixture.behave(.normal)
            try? await client.deleteQuery(query.id ?? "")
            throw error
        }
    }

    func definition(
        _ columns: [QueryDefinition.Column], _ filter: QueryFilter
    ) async throws -> QueryDefinition {
        QueryDefinition(
            name: unique(), folder: try await personalFolder().id, recordType: client.settings.recordType,
            columns: columns, filter: filter)
    }

    /// The rows that a query of the records with these headlines has.
    func rows(
        headlines: [String], _ columns: [String], and conditions: [QueryFilter.Condition] = []
    ) async throws -> [ResultRow] {
        let filter = QueryFilter(.all, [.init("Headline", .isOneOf, headlines)] + conditions)
        return try await withQuery(columns.map { QueryDefinition.Column($0) }, filter) {
            try await client.rows(of: $0)
        }
    }

    // MARK: Expectations

    func expect(_ condition: Bool, _ problem: @autoclosure () -> String) throws {
        if !condition { throw Contract.Failure(problem()) }
    }

    func error<Answer>(of what: String, _ call: () async throws -> Answer) async throws -> BackendError {
        do {
            let response = try await call()
            throw Contract.Failure("\(what) should throw, but gave \(response)")
        } catch let error as BackendError {
            return error
        }
    }

    /// Expects that each call throws an error that passes.
    func expect(
        _ attempts: [CompassAttempt], toFail cause: String, _ isExpected: (BackendError) -> Bool
    ) async throws {
        for attempt in attempts {
            let error = try await error(of: attempt.name, attempt.call)
            try expect(isExpected(error), "\(attempt.name) \(cause) threw \(error)")
        }
    }

    func expectRefusal<Answer>(of what: String, _ call: () async throws -> Answer) async throws {
        let error = try await error(of: what, call)
        guard case .refused(let messages) = error else {
            throw Contract.Failure("\(what) should be refused, but threw \(error)")
        }
        try expect(
            !messages.isEmpty && messages.allSatisfy { $0.contains { !$0.isWhitespace } },
            "\(what) is refused without a readable message: \(messages)")
    }
}

/// A call with its name, for checks that make several.
struct CompassAttempt: Sendable {
    let name: String
    let call: @Sendable () async throws -> Void

    init(_ name: String, _ call: @escaping @Sendable () async throws -> Void) { (self.name, self.call) = (name, call) }
}
