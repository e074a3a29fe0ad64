/// Folders and queries: one public root, and one of each user.
struct CompassWorkspace: Sendable {
    struct Folder: Codable, Sendable {
        let id: Int
        var name: String
        /// `nil` for a root.
        var parent: Int?
        /// The owner; `nil`: public, and read-only.
        var owner: String?
    }

    struct Query: Codable, Sendable {
        let id: Int
        var folder: Int
        var definition: CompassQuery
    }

    private(set) var folders: [Int: Folder] = [:]
    private(set) var queries: [Int: Query] = [:]
    /// The next dbid of something in a workspace.
    private(set) var nextID = 33_554_441

    static let personal = "Personal Queries"

    init() { put(Folder(id: nextID, name: "Public Queries")) }

    mutating func put(_ folder: Folder) {
        folders[folder.id] = folder
        nextID = max(nextID, folder.id + 1)
    }

    mutating func put(_ query: Query) {
        queries[query.id] = query
        nextID = max(nextID, query.id + 1)
    }

    mutating func removeQuery(_ id: Int) { queries[id] = nil }

    // MARK: What a user sees

    func folder(_ id: Int, of user: CompassUser) -> Folder? {
        folders[id].flatMap { $0.owner == nil || $0.owner == user.name ? $0 : nil }
    }

    func query(_ id: Int, of user: CompassUser) -> Query? {
        queries[id].flatMap { folder($0.folder, of: user) == nil ? nil : $0 }
    }

    /// In the order of their ids, so that the personal one, which is made later, is the last.
    func roots(of user: CompassUser) -> [Folder] {
        folders.values.filter { $0.parent == nil && ($0.owner == nil || $0.owner == user.name) }
            .sorted { $0.name < $1.name }
    }

    func subfolders(of id: Int) -> [Folder] { folders.values.filter { $0.parent == id }.sorted { $0.id < $1.id } }

    func queries(in id: Int) -> [Query] { queries.values.filter { $0.folder == id }.sorted { $0.id < $1.id } }

    /// The folder of a new query.
    ///
    /// - Throws: ``CompassRules/Refusal`` where the folder is not there or not the user's, or has such a name already.
    func place(of query: CompassQuery, by user: CompassUser) throws(CompassRules.Refusal) -> Folder {
        if let problem = query.problem { throw CompassRules.Refusal(problem) }
        guard let id = Int(query.dbIdParent), let folder = folder(id, of: user) else {
            throw CompassRules.Refusal("The folder \(query.dbIdParent) was not found.", .notFound)
        }
        guard folder.owner == user.name else {
            throw CompassRules.Refusal("You may not write into the folder \"\(folder.name)\".", .forbidden)
        }
        let names = queries(in: id).map(\.definition.name) + subfolders(of: id).map(\.name)
        guard !names.contains(query.name) else {
            throw CompassRules.Refusal("A workspace item named \"\(query.name)\" already exists in this folder.")
        }
        return folder
    }
}
