import Essentials
import Hummingbird

/// The control routes below `/sandbox/`, without credentials.
extension CompassResponder {
    func control(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/organisation"):
            return try await SandboxControl.change(request) { (organisation: CompassOrganisation) in
                system.load(organisation)
                return try SandboxControl.encoded(["users": system.withState { $0.users.count }])
            }
        case (.post, "/sandbox/changes"):
            return try await SandboxControl.change(request) { (changes: [CompassChange]) in
                do {
                    return try SandboxControl.encoded(["records": try system.perform(changes)])
                } catch let refusal as CompassRules.Refusal {
                    throw SandboxProblem(message: refusal.message)
                }
            }
        case (.post, "/sandbox/folders"):
            return try await SandboxControl.change(request) { (folder: NewFolder) in
                try SandboxControl.encoded(["dbId": try add(folder)])
            }
        case (.post, "/sandbox/clock"):
            return try await SandboxControl.change(request) { (clock: NewClock) in
                let now = system.withState { state in
                    if let seconds = clock.advanceSeconds {
                        state.clock.setMs = state.clock.nowMs + Int64(seconds) * 1_000
                    } else {
                        state.clock.setMs = clock.now?.millisecondsSinceEpoch
                    }
                    return state.clock.nowMs
                }
                return try SandboxControl.encoded(["now": Timestamp(millisecondsSinceEpoch: now)])
            }
        case (.post, "/sandbox/tokens/end"):
            system.withState { $0.logins.endAll() }
            return try SandboxControl.encoded(["ended": true])
        case (.get, "/sandbox/sessions"):
            return .json(.ok, .array(system.withState { $0.sessions.all }.map(Self.json)))
        case (.get, "/sandbox/queries"):
            return .json(.ok, .array(system.withState { Self.queries($0.workspace) }))
        case (.get, "/sandbox/history"):
            return SandboxControl.lines(request) { [system] after in
                let zone = system.switches.zone
                let entries = system.history(after: after, countMax: 10_000)
                return entries.last.map { last in
                    (entries.map { Self.line($0.record, $0.entry, zone) }, last.entry.number)
                }
            }
        default:
            return try await system.control(request) ?? .compassNotFound
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
        guard let id else { throw SandboxProblem(message: "there is no parent folder for \(new.path) of \(new.user)") }
        return id
    }

    private static func queries(_ workspace: CompassWorkspace) -> [JSONText] {
        workspace.queries.values.sorted { $0.id < $1.id }.map { query in
            .object([
                ("dbId", .string(String(query.id))), ("name", .string(query.definition.name)),
                ("owner", workspace.folders[query.folder]?.owner.map { .string($0) } ?? .null),
            ])
        }
    }

    private static func json(_ session: CompassSession) -> JSONText {
        .object([
            ("user", .string(session.user)), ("record", .string(CompassRecord.id(ofNumber: session.number))),
            ("action", .string(session.action.name)), ("isNew", .bool(session.isNew)),
        ])
    }

    private static func line(_ record: CompassRecord, _ entry: CompassHistory, _ zone: CompassZone) -> JSONText {
        .object([
            ("number", .number(entry.number)), ("record", .string(record.id)), ("action", .string(entry.action)),
            ("user", .string(entry.user)),
            ("at", .string(Timestamp(millisecondsSinceEpoch: entry.atMs).description)),
            ("timestamp", .string(zone.text(entry.clockMs))),
            ("visibleAt", .string(Timestamp(millisecondsSinceEpoch: entry.visibleAtMs).description)),
            ("oldState", .string(entry.oldState)), ("newState", .string(entry.newState)),
            ("owner", .string(entry.owner)), ("headline", .string(record.fields["Headline"] ?? "")),
            ("isDeleted", .bool(record.isDeleted)),
            (
                "changes",
                .object(entry.changes.sorted { $0.key < $1.key }.map { ($0.key, JSONText.string($0.value)) })
            ),
        ])
    }
}
