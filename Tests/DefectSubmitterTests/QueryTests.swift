import Compass
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectSubmitter
@testable import Sandbox

/// The queries of people's folders, and their rows.
@Suite(.ownThreads) struct QueryTests {
    @Test func queriesOfPersonalAndPublicFoldersAreListed() async throws {
        try await CommandWorld.run { world in
            let mine = try await world.addQuery("Mine")
            _ = try await world.addQuery(TemporaryQuery.name(at: .now()))
            let (folder, inner, shared) = world.compass.addWorkspaceItems()
            let list = try await world.perform(DefectCommand(operation: .queries))
            #expect(list.status == .done && list.detail?.readAt != nil)
            let publicItem = DefectDetail.WorkspaceItem(id: shared, name: "Shared", folder: "Public Queries")
            #expect(
                list.detail?.items == [
                    .init(id: folder, name: "Reports", folder: "Personal Queries", isFolder: true),
                    .init(id: mine, name: "Mine", folder: "Personal Queries"), publicItem,
                ])
            let nested = try await world.perform(DefectCommand(operation: .queries, folder: folder))
            #expect(nested.detail?.items == [.init(id: inner, name: "Inner", folder: "Reports")])
            let bos = try await world.perform(DefectCommand(operation: .queries), as: "bo@example.com")
            #expect(bos.detail?.items == [publicItem], "other people's folders are not listed")
            for (email, id) in [("bo@example.com", folder), ("ana@example.com", "999")] {
                let refused = try await world.perform(DefectCommand(operation: .queries, folder: id), as: email)
                #expect(refused.status == .refused && refused.messages == ["Folder \(id) does not exist"])
            }
        }
    }

    /// A person's query may have filters and columns that the service does not create.
    @Test func publicQueryWithOtherFilterIsRun() async throws {
        try await CommandWorld.run { world in
            let (first, second) = (try await world.compass.add("H"), try await world.compass.add("I"))
            let shared = world.compass.addWorkspaceItems().shared
            for email in ["ana@example.com", "bo@example.com"] {
                let page = try await world.perform(DefectCommand(operation: .runQuery, query: shared), as: email)
                #expect(page.status == .done && page.detail?.columns == ["id"], "\(page.messages)")
                #expect(page.detail?.rows == [[first], [second]] && page.detail?.nextRow == nil)
            }
        }
    }

    /// Each row once, and in the query's order.
    @Test func queryIsReadInPages() async throws {
        try await CommandWorld.run { world in
            _ = try world.compass.system.perform((1...120).map { Self.change("row \($0)") })
            let query = try await world.addQuery("all")
            let (rows, pageCount) = try await Self.rows(of: query, &world)
            #expect(pageCount == 3)
            #expect(rows.map { $0[1] } == (1...120).reversed().map { "row \($0)" })
            #expect(rows.allSatisfy { $0.count == 2 && $0[0].hasPrefix("SAMPL") })
            let beyond = try await world.perform(DefectCommand(operation: .runQuery, query: query, fromRow: 500))
            #expect(beyond.status == .done && beyond.detail?.rows == [] && beyond.detail?.nextRow == nil)
            #expect(beyond.detail?.columns == ["id", "Headline"])
            let command = DefectCommand(operation: .runQuery, query: query)
            let bos = try await world.perform(command, as: "bo@example.com")
            #expect(bos.status == .refused && bos.messages == ["Query \(query) does not exist"])
            try await world.compass.compass("ana").deleteQuery(query)
            #expect(try await world.perform(command).messages == ["Query \(query) does not exist"])
        }
    }

    /// A page has fewer rows if they are long: no row is skipped, and an object keeps its size.
    @Test func longRowsMakeShorterPages() async throws {
        try await CommandWorld.run { world in
            let long = String(repeating: "\"ø", count: 1_500)
            _ = try world.compass.system.perform(
                (1...60).map { Self.change("row \($0)", ["Description": long, "Symptoms": long]) })
            let query = try await world.addQuery("long", ["id", "Headline", "Description", "Symptoms"])
            let (rows, pageCount) = try await Self.rows(of: query, &world)
            #expect(rows.map { $0[1] } == (1...60).reversed().map { "row \($0)" } && pageCount > 5)
            #expect(rows.allSatisfy { $0[2] == long && $0[3] == long })
        }
    }

    private static func change(_ headline: String, _ more: [String: String] = [:]) -> CompassChange {
        CompassChange(user: "bo", fields: ["Headline": headline, "Severity": "3-Average"].merging(more) { $1 })
    }

    private static func rows(
        of query: String, _ world: inout CommandWorld
    ) async throws -> (rows: [[String]], pageCount: Int) {
        var (rows, pageCount, next): ([[String]], Int, Int?) = ([], 0, 0)
        while let first = next, pageCount < 60 {
            let page = try await world.perform(
                DefectCommand(operation: .runQuery, query: query, fromRow: first == 0 ? nil : first))
            #expect(page.status == .done && page.messages.isEmpty, "\(page.messages)")
            #expect(try JSONEncoder().encode(page).count <= Kind.fieldsBytesMax)
            let detail = try #require(page.detail)
            rows += detail.rows ?? []
            #expect(detail.nextRow == nil || detail.nextRow == rows.count)
            next = detail.nextRow
            pageCount += 1
        }
        return (rows, pageCount)
    }
}

extension RunningEmulator where System == CompassSystem {
    /// Adds a folder with a query to Ana's own folder, and a public query.
    fileprivate func addWorkspaceItems() -> (folder: String, inner: String, shared: String) {
        system.withState { state -> (folder: String, inner: String, shared: String) in
            func root(_ owner: String?) -> Int? {
                state.workspace.folders.values.first { $0.parent == nil && $0.owner == owner }?.id
            }
            func add(_ name: String, to folder: Int) -> Int {
                let id = state.workspace.nextID
                let definition = CompassQuery(
                    name: name, dbIdParent: String(folder), primaryEntityDefName: CompassSchema.recordType,
                    queryFieldDefs: [
                        CompassQuery.Column(fieldPathName: "Headline", isShown: false),
                        CompassQuery.Column(fieldPathName: "id", sortType: "SORT_ASC"),
                    ], filterNode: CompassQuery.Node(boolOp: "BOOL_OP_NOT"))
                state.write(.query(CompassWorkspace.Query(id: id, folder: folder, definition: definition)))
                return id
            }
            let folder = state.workspace.nextID
            state.write(
                .folder(CompassWorkspace.Folder(id: folder, name: "Reports", parent: root("ana"), owner: "ana")))
            let inner = add("Inner", to: folder)
            let shared = add("Shared", to: root(nil) ?? 0)
            return (String(folder), String(inner), String(shared))
        }
    }
}
