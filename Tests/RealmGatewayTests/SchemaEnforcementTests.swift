import Model
import TestSupport
import Testing

/// The gateway enforces the field schemas in `deploy/openapi.yaml`: it rejects values that a schema forbids, with a
/// problem that names the field and what is allowed, and accepts the others.
@Suite(.ownThreads) struct SchemaEnforcementTests {
    /// The kinds in the API.
    private static let kinds = Kind.allCases.filter { !$0.row.realms.isEmpty }

    @Test(arguments: kinds) func valuesThatTheSchemaForbidsAreRejected(kind: Kind) throws {
        let object = try SchemaObject(kind)
        var count = 0
        for (field, node) in object.properties {
            for value in try object.values.forbidden(node, sample: object.fields[field] ?? "null") {
                count += 1
                let message = try object.problem(with: field, value.json)
                let problem = try #require(message, "\(kind).\(field) takes \(value.json.prefix(200)): \(value.why)")
                let names =
                    problem.contains("'\(field)'") || problem.contains("'\(field).")
                    || problem.contains("'\(field)[")
                #expect(names, "\(kind).\(field), \(value.json.prefix(200)): \(problem)")
                #expect(Self.namesWhatIsAllowed(problem), "\(kind).\(field), \(value.json.prefix(200)): \(problem)")
            }
            if object.required.contains(field) {
                #expect(try object.problem(with: field, nil)?.contains("'\(field)' is missing") == true)
            }
        }
        #expect(count > 3 * object.properties.count, "\(kind)")
    }

    @Test(arguments: kinds) func valuesThatTheSchemaAllowsAreAccepted(kind: Kind) throws {
        let object = try SchemaObject(kind)
        for (field, node) in object.properties {
            for value in try object.values.allowed(node, sample: object.fields[field] ?? "null") {
                let problem = try object.problem(with: field, value)
                #expect(problem == nil, "\(kind).\(field): \(value.prefix(200))")
            }
        }
    }

    /// A duplicate key is rejected at any depth, with its path.
    @Test func duplicateKeyIsRejectedWithItsPath() throws {
        let task = try SchemaObject(.fieldTask)
        let place = try task.problem(with: "place", #"{"latitude":1,"longitude":2,"latitude":3}"#)
        #expect(place?.contains("'place.latitude': duplicate key") == true, "\(place ?? "")")
        let context = try SchemaObject(.reportingContext)
        let name = try context.problem(with: "sections", #"[{"name":"a"},{"name":"b","n\u0061me":"c"}]"#)
        #expect(name?.contains("'sections[1].name': duplicate key") == true, "\(name ?? "")")
    }

    private static func namesWhatIsAllowed(_ problem: String) -> Bool {
        ["must", "is missing", "has no field", "duplicate key", "at most", "give one of them"]
            .contains { problem.contains($0) }
    }
}
