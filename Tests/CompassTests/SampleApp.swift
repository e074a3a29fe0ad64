import FoundationEssentials
import Testing

/// The responses that the vendor's sample app decodes, in its own names and types: stricter than the client.
enum SampleApp {
    struct Repo: Decodable { let name: String }

    struct AuthToken: Decodable { let token: String }

    struct Folder: Decodable {
        struct Child: Decodable { let name, dbId, workspaceItemType: String }

        let name, dbId: String
        let children: [Child]
    }

    struct QueryDef: Decodable {
        struct QueryFieldDef: Decodable {
            let fieldPathName, sortType: String
            let isShown: Bool
        }

        struct FilterNode: Decodable {
            struct FieldFilter: Decodable {
                let fieldPath, compOp: String
                let values: [String]
            }

            let boolOp: String
            let fieldFilters: [FieldFilter]
        }

        let name, dbId, dbIdParent, primaryEntityDefName: String
        let queryFieldDefs: [QueryFieldDef]
        let filterNode: FilterNode
    }

    struct ResultSet: Decodable { let result_set_id: String }

    struct ResultSetPage: Decodable {
        struct Row: Decodable { let values: [String] }

        let rows: [Row]
    }

    struct Field: Decodable {
        let name, value, requiredness: String
        let fieldChoiceList: [String]?
    }

    struct Record: Decodable { let fields: [Field] }

    struct RecordType: Decodable {
        struct State: Decodable {
            let name, actionType, actionDestStateName: String
            let actionSourceStateNames: [String]
        }

        let actions: [State]
    }

    struct ErrorResponse: Decodable {
        let status: Int
        let message: String
    }

    /// Its query documents, with the time of *Modified Defect* inserted.
    static func assignedToMe(in folder: String) -> String {
        query(
            "Assigned To Me", in: folder, ["id", "Headline", "Severity", "dbid", "Submit_Date", "State", "Submitter"],
            #"[{"fieldPath": "Owner", "compOp": "COMP_OP_EQ", "values": ["[CURRENT_USER]"]}]"#)
    }

    static func reportedByMe(in folder: String) -> String {
        query(
            "Reported By Me", in: folder, ["id", "Headline", "Severity", "dbid", "Submit_Date", "State"],
            #"[{"fieldPath": "Submitter", "compOp": "COMP_OP_EQ", "values": ["[CURRENT_USER]"]}]"#)
    }

    static func modifiedDefect(since time: String, in folder: String) -> String {
        query(
            "Modified Defect", in: folder, ["id", "Headline", "dbid", "history.action_name"],
            """
            [{"fieldPath": "Owner", "compOp": "COMP_OP_EQ", "values": ["[CURRENT_USER]"]},
             {"fieldPath": "history.action_name", "compOp": "COMP_OP_IN", "values": ["Submit", "Modify", "Assign"]},
             {"fieldPath": "history.action_timestamp", "compOp": "COMP_OP_GT", "values": ["\(time)"]},
             {"fieldPath": "history.user_name", "compOp": "COMP_OP_NEQ", "values": ["[CURRENT_USER]"]}]
            """)
    }

    private static func query(_ name: String, in folder: String, _ columns: [String], _ filters: String) -> String {
        let definitions = columns.map { column in
            let sort = column == "Submit_Date" ? "SORT_DESC" : "NO_SORT"
            return #"{"fieldPathName": "\#(column)", "isShown": true, "sortType": "\#(sort)"}"#
        }
        return """
            {"name": "\(name)", "dbId": "", "dbIdParent": "\(folder)", "primaryEntityDefName": "Defect",
             "queryFieldDefs": [\(definitions.joined(separator: ", "))],
             "filterNode": {"boolOp": "BOOL_OP_AND", "fieldFilters": \(filters)}}
            """
    }
}

extension CompassFixture {
    /// Sends a request and decodes the response as the sample app does.
    func call<Body: Decodable>(
        _ method: String, _ path: String, token: String? = nil, _ json: String? = nil, status: Int = 200,
        as _: Body.Type
    ) async throws -> Body {
        let answer = try await send(method, path, token: token, json)
        try #require(answer.status == status, "\(method) \(path): \(answer)")
        return try JSONDecoder().decode(Body.self, from: Data(answer.body.utf8))
    }

    /// Finds the user's own folder as the sample app does.
    func personalFolder(_ token: String) async throws -> SampleApp.Folder {
        let folders = try await call(
            "GET", Self.database + "/workspace/folders", token: token, as: [SampleApp.Folder].self)
        return try #require(folders.first { $0.name == "Personal Queries" })
    }
}
