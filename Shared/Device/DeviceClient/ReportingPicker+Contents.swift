import FoundationEssentials
public import Model

extension ReportingPicker {
    /// Creates the picker of a person from their realm and their catalogue.
    ///
    /// Unreadable objects are treated as missing: a template with an unreadable context is not offered.
    ///
    /// - Parameters:
    ///   - own: The person's own realm, `/users/{e-mail}`.
    ///   - contents: The shown objects, see ``DeviceState/contents``. Other realms than these two are ignored.
    /// - Returns: `nil` while the realm has no `User`. Without its catalogue, the picker has no nodes.
    public init?(ofPerson own: RealmPath, in contents: [RealmPath: RealmContent]) {
        let content = contents[own] ?? [:]
        guard let user = content.fields(of: .user, as: User.self).values.first else { return nil }
        let catalogue = user.catalogue.flatMap { contents[.catalogue($0)] } ?? [:]
        let objects = ReportingObjects(
            templates: content.fields(of: .reportingTemplate, as: ReportingTemplate.self),
            contexts: content.fields(of: .reportingContext, as: ReportingContext.self),
            nodes: catalogue.fields(of: .reportingTreeNode, as: ReportingTreeNode.self))
        self.init(
            objects, templates: user.reportingTemplates,
            retired: content.fields(of: .reportingTreeNode, as: ReportingTreeNode.self))
    }
}

extension RealmContent {
    /// Returns the readable objects of a kind.
    fileprivate func fields<Fields: Decodable>(of kind: Kind, as type: Fields.Type) -> [UUID: Fields] {
        var fields: [UUID: Fields] = [:]
        for (id, held) in objects(of: kind) { fields[id] = held.decoded(as: type) }
        return fields
    }
}

extension DeviceObject {
    /// Returns the decoded fields; `nil` if they are invalid. Unknown members of nested objects, as a newer server may
    /// send them, are ignored.
    fileprivate func decoded<Fields: Decodable>(as type: Fields.Type) -> Fields? {
        if let fields = try? json?.decoded(as: type) { return fields }
        return try? JSONDecoder().decode(type, from: Data(fields))
    }
}
