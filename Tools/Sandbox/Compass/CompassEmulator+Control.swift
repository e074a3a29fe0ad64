import Essentials
import HTTPTypes
import Hummingbird

extension CompassEmulator {
    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/changes"):
            return try await change(request) { (changes: [CompassChange]) in
                ["records": .texts(try system.perform(changes))]
            }
        case (.post, "/sandbox/folders"):
            return try await change(request) { (folder: NewFolder) in ["dbId": .number(try add(folder))] }
        case (.post, "/sandbox/clock"):
            return try await change(request) { (clock: NewClock) in
                let now = system.withState { state in
                    state.clockMs =
                        clock.advanceSeconds.map { state.nowMs + Int64($0) * 1_000 }
                        ?? clock.now?.millisecondsSinceEpoch
                    return state.nowMs
                }
                return ["now": .string(Timestamp(millisecondsSinceEpoch: now).description)]
            }
        case (.post, "/sandbox/tokens/end"):
            system.withState { $0.logins.endAll() }
            return .json(.ok, ["ended": true])
        case (.get, "/sandbox/sessions"):
            return .json(.ok, .array(system.withState { $0.sessions.all }.map { Self.json($0) }))
        case (.get, "/sandbox/queries"):
            return .json(.ok, .array(system.withState { Self.queries($0.workspace) }))
        case (.get, "/sandbox/history"):
            let (after, zone) = (request.after, system.switches.zone)
            return lines(system.withState { $0.changes(after: after) }) { Self.line($0.record, $0.entry, zone) }
        default: return nil
        }
    }

    /// `{"now": "2026-10-25T00:30:00Z"}` stops the clock there, `{}` lets it go as this machine's, and
    /// `{"advanceSeconds": 300}` sets it on.
    private struct NewClock: Decodable {
        let now: Timestamp?
        let advanceSeconds: Int?
    }

    /// A folder below a user's own.
    private struct NewFolder: Decodable {
        let user: String
        /// Names below the personal root; the last one is made.
        let path: [String]
    }

    private func add(_ new: NewFolder) throws -> Int {
        let id = system.withState { state -> Int? in
            guard let name = new.path.last,
                var parent = state.workspace.folders.values.first(where: { $0.parent == nil && $0.owner == new.user })
            else { return nil }
            for name in new.path.dropLast() {
                guard let next = state.workspace.subfolders(of: parent.id).first(where: { $0.name == name }) else {
                    return nil
                }
                parent = next
            }
            let folder = CompassWorkspace.Folder(
                id: state.workspace.nextID, name: name, parent: parent.id, owner: new.user)
            state.write(.folder(folder))
            return folder.id
        }
        guard let id else { throw EmulatorError("there is no parent folder for \(new.path) of \(new.user)") }
        return id
    }

    private static func queries(_ workspace: CompassWorkspace) -> [JSON] {
        workspace.queries.values.sorted { $0.id < $1.id }.map { query in
            [
                "dbId": .string(String(query.id)), "name": .string(query.definition.name),
                "owner": .text(workspace.folders[query.folder]?.owner),
            ]
        }
    }

    private static func json(_ session: CompassSession) -> JSON {
        [
            "user": .string(session.user), "record": .string(CompassRecord.id(ofNumber: session.number)),
            "action": .string(session.action.name), "isNew": .bool(session.isNew),
        ]
    }

    private static func line(_ record: CompassRecord, _ entry: CompassHistory, _ zone: CompassZone) -> JSON {
        [
            "number": .number(entry.number), "record": .string(record.id), "action": .string(entry.action),
            "user": .string(entry.user), "at": .string(Timestamp(millisecondsSinceEpoch: entry.atMs).description),
            "timestamp": .string(zone.text(entry.clockMs)),
            "visibleAt": .string(Timestamp(millisecondsSinceEpoch: entry.visibleAtMs).description),
            "oldState": .string(entry.oldState), "newState": .string(entry.newState),
            "owner": .string(entry.owner), "headline": .string(record.fields["Headline"] ?? ""),
            "isDeleted": .bool(record.isDeleted),
            "changes": .object(entry.changes.sorted { $0.key < $1.key }.map { ($0.key, JSON.string($0.value)) }),
        ]
    }
}
