import Essentials
import HTTPTypes
import Hummingbird

/// Folders, queries and result sets.
extension CompassEmulator {
    func workspace(_ call: CompassCall) async throws -> Response {
        let words = call.words.dropFirst()
        switch (call.method, words.first, words.count) {
        case (.get, "folders", 1):
            system.count("folderReads")
            let workspace = system.withState { $0.workspace }
            return .json(.ok, .array(workspace.roots(of: call.user).map { Self.json($0, workspace) }))
        case (.get, "folders", 2...3): return try folder(call)
        case (.post, "queryDefs", 1): return try await createQuery(call)
        case (.get, "queryDefs", 2):
            return .json(.ok, Self.json(try query(call)))
        case (.delete, "queryDefs", 2):
            system.count("queriesDeleted")
            return try await write(call.context) { [system] isTrial in
                let id = try query(call).id
                if !isTrial { system.withState { $0.write(.queryRemoved(id)) } }
                return Response(status: .noContent)
            }
        case (.post, "queryDefs", 3) where words.last == "resultsets": return try await createResultSet(call)
        case (.get, "queryDefs", 4): return try page(call)
        default: return Self.notFound
        }
    }

    private func folder(_ call: CompassCall) throws -> Response {
        system.count("folderReads")
        let workspace = system.withState { $0.workspace }
        guard let folder = Int(call.words[2]).flatMap({ workspace.folder($0, of: call.user) }) else {
            throw CompassRules.Refusal("The folder \(call.words[2]) was not found.", .notFound)
        }
        guard call.words.count == 4 else { return .json(.ok, Self.json(folder, workspace)) }
        guard call.words[3] == "queryDefs" else { return Self.notFound }
        return .json(.ok, .array(workspace.queries(in: folder.id).map { Self.json($0) }))
    }

    private func createQuery(_ call: CompassCall) async throws -> Response {
        system.count("queriesCreated")
        let definition = try await call.body(as: CompassQuery.self)
        if system.switches.hidesHistoryIDs, definition.shown.contains(where: { $0.fieldPathName == "history.dbid" }) {
            throw CompassRules.Refusal("The field \"history.dbid\" does not exist.")
        }
        return try await write(call.context) { [system] isTrial in
            try system.withState { state in
                let folder = try state.workspace.place(of: definition, by: call.user)
                var made = definition
                if state.switches.shufflesFields { made.queryFieldDefs.reverse() }
                let query = CompassWorkspace.Query(
                    id: state.workspace.nextID, folder: folder.id, definition: made)
                if !isTrial { state.write(.query(query)) }
                return .json(.created, Self.json(query))
            }
        }
    }

    /// The query that the path names.
    private func query(_ call: CompassCall) throws -> CompassWorkspace.Query {
        let workspace = system.withState { $0.workspace }
        guard let query = Int(call.words[2]).flatMap({ workspace.query($0, of: call.user) }) else {
            throw CompassRules.Refusal("The query \(call.words[2]) was not found.", .notFound)
        }
        return query
    }

    // MARK: Result sets

    /// The options are in an object of their own or at the top, and numbers may be texts: the vendor's two apps differ.
    private struct Options: Decodable {
        struct Number: Decodable {
            let value: Int

            init(from decoder: any Decoder) throws {
                let container = try decoder.singleValueContainer()
                let number = try (try? container.decode(Int.self)) ?? Int(container.decode(String.self))
                guard let number else { throw decoder.corrupted("not a number") }
                value = number
            }
        }

        struct Values: Decodable {
            let pageSize, maxResultSetRows, maxMultiLineTextLength: Number?
            let convertToLocalTime: Bool?
        }

        let values: Values

        private enum CodingKeys: CodingKey { case resultSetOptions }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            values =
                try container.decodeIfPresent(Values.self, forKey: .resultSetOptions) ?? Values(from: decoder)
        }
    }

    private func createResultSet(_ call: CompassCall) async throws -> Response {
        system.count("resultSets")
        let options = try await call.body(as: Options.self).values
        let query = try query(call)
        guard (options.pageSize?.value ?? 1) > 0 else { throw CompassRules.Refusal("A page has 1 row or more.") }
        let (evaluation, records, history, pageRowsMax) = system.withState { state in
            let zone = state.switches.zone
            let evaluation = CompassEvaluation(
                query: query.definition, user: call.user, zone: zone, nowMs: state.nowMs,
                shownZone: options.convertToLocalTime ?? true ? zone : .utc,
                multiLineTextLengthMax: options.maxMultiLineTextLength?.value ?? 0,
                rowsMax: options.maxResultSetRows?.value ?? 0)
            return (evaluation, state.records, state.history, state.switches.pageRowsMax)
        }
        // Outside the lock: a large tracker takes a while.
        let rows = evaluation.rows(records, history)
        let set = CompassResultSets.ResultSet(
            query: query.id, user: call.user.name, rows: rows,
            pageRowsMax: min(options.pageSize?.value ?? 100, pageRowsMax))
        let id = system.withState { $0.resultSets.add(set) }
        return .json(.created, ["result_set_id": .string(String(id))])
    }

    private func page(_ call: CompassCall) throws -> Response {
        system.count("pages")
        let query = try query(call)
        let number = call.parameter("pageNumber").map { Int($0) ?? 0 } ?? 1
        guard number > 0 else { throw CompassRules.Refusal("A page's number is 1 or more.") }
        let (found, isStuck) = system.withState { state in
            (Int(call.words[4]).flatMap { state.resultSets[$0] }, state.switches.ignoresPageNumber)
        }
        guard call.words[3] == "resultsets", let set = found, set.query == query.id, set.user == call.user.name else {
            throw CompassRules.Refusal("The result set \(call.words[4]) was not found.", .notFound)
        }
        let columns = query.definition.shown.map(\.fieldPathName)
        let (owner, person) = (columns.firstIndex(of: "Owner"), system.switches.faults.unreadableRowsOf)
        let page = set.page(isStuck ? 1 : number)
        let rows = page.indices.map { index in
            let values = page[index].map { JSON.string($0) }
            let row = { (values: [JSON]) -> JSON in ["values": .array(values)] }
            guard let owner, !person.isEmpty, page[index][owner] == person else { return row(values) }
            system.count("unreadableRows")
            return UnreadableRow.json(Array(zip(columns, values)), id: "id", number: index) { row($0.map(\.1)) }
        }
        return .json(.ok, ["rows": .array(rows)])
    }

    // MARK: JSON

    private static func json(_ folder: CompassWorkspace.Folder, _ workspace: CompassWorkspace) -> JSON {
        func child(_ id: Int, _ name: String, _ type: JSON) -> JSON {
            ["name": .string(name), "dbId": .string(String(id)), "workspaceItemType": type]
        }
        let folders = workspace.subfolders(of: folder.id).map { child($0.id, $0.name, "WORKSPACE_FOLDER") }
        let queries = workspace.queries(in: folder.id).map { child($0.id, $0.definition.name, "WORKSPACE_QUERY") }
        return [
            "name": .string(folder.name), "dbId": .string(String(folder.id)),
            "dbIdParent": .string(folder.parent.map { String($0) } ?? ""), "masterReplicaName": "<local>",
            "workspaceItemType": "WORKSPACE_FOLDER", "children": .array(folders + queries), "isReadable": true,
            "isWritable": .bool(folder.owner != nil),
        ]
    }

    private static func json(_ query: CompassWorkspace.Query) -> JSON {
        let definition = query.definition
        return [
            "name": .string(definition.name), "dbId": .string(String(query.id)),
            "dbIdParent": .string(String(query.folder)),
            "primaryEntityDefName": .string(definition.primaryEntityDefName),
            "queryFieldDefs": .array(definition.queryFieldDefs.map { json($0) }),
            "filterNode": definition.filterNode.map { json($0) } ?? .null,
        ]
    }

    private static func json(_ column: CompassQuery.Column) -> JSON {
        let type = CompassSchema.fieldsByName[column.fieldPathName]?.type ?? ""
        let dataType: JSON =
            switch type {
            case "DBID", "INT": "PD_C_SLONG"
            case "DATE_TIME": "PD_C_TIMESTAMP"
            case "MULTILINE_STRING": "PD_C_LONGVARCHAR"
            default: column.fieldPathName == "history.action_timestamp" ? "PD_C_TIMESTAMP" : "PD_C_CHAR"
            }
        return [
            "fieldPathName": .string(column.fieldPathName), "isShown": .bool(column.isShown ?? true),
            "sortType": .string(column.sortType ?? "NO_SORT"), "dataType": dataType,
            "fieldType": .string(type.isEmpty ? "SHORT_STRING" : type),
        ]
    }

    private static func json(_ node: CompassQuery.Node) -> JSON {
        let filters = (node.fieldFilters ?? []).map { filter -> JSON in
            [
                "fieldPath": .string(filter.fieldPath), "compOp": .string(filter.compOp),
                "values": .texts(filter.values ?? []),
            ]
        }
        return [
            "boolOp": .string(node.boolOp ?? "BOOL_OP_AND"), "fieldFilters": .array(filters),
            "childFilterNodes": .array((node.childFilterNodes ?? []).map { json($0) }),
        ]
    }
}
