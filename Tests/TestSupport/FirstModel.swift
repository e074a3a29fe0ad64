package import FoundationEssentials
package import Model
import Testing

/// The examples of the first model ("Reporting structures" and "Reporting template"), without their `...`.
package struct FirstModel: Decodable {
    package let trees: [ReportingTree]
    package let contexts: [ReportingTree.Context]
    package let template: ReportingTemplate

    package static let templateID = UUID()

    package static func load() throws -> FirstModel {
        try JSONDecoder().decode(FirstModel.self, from: try golden("FirstModel"))
    }

    package var objects: ReportingObjects {
        ReportingObjects(
            templates: [FirstModel.templateID: template],
            contexts: Dictionary(uniqueKeysWithValues: contexts.map { ($0.object.id, $0.object.fields) }),
            nodes: Dictionary(uniqueKeysWithValues: trees.flatMap { $0.flatten() }.map { ($0.id, $0.fields) }))
    }

    /// The corrected examples: the Kind context refers to the Kind tree.
    package static func repaired() throws -> ReportingObjects {
        var objects = try load().objects
        let (kind, root) = (
            try id("Kind", in: objects), try #require(UUID(uuidString: "de808bee-75f2-4ad1-b656-ac9b3bfec741"))
        )
        objects.contexts[kind]?.sections[0].rootNode = root
        return objects
    }

    package static func id(_ context: String, in objects: ReportingObjects) throws -> UUID {
        try #require(objects.contexts.first { $0.value.name == context }?.key)
    }

    package static func node(_ reference: String, in objects: ReportingObjects) throws -> UUID {
        try #require(objects.nodes.first { $0.value.referenceId == reference }?.key)
    }
}

/// A golden file: an object of a kind as an earlier version wrote it, or a sample.
package func golden(_ name: String) throws -> Data {
    try Data(contentsOf: projectFolder.appendingPathComponent("Tests/ModelTests/Golden/\(name).json"))
}
