import Model
import Testing

/// What `deploy/openapi.yaml` says of the fields of each kind is enforced: of every field, values that the schema
/// forbids are refused with a problem that names the field and what is allowed, and values that it allows are taken.
@Suite struct SchemaEnforcementTests {
    /// Kinds that an object of the API may be of.
    private static let kinds = Kind.allCases.filter { !$0.row.realms.isEmpty }

    @Test(arguments: kinds) func valuesThatTheSchemaForbidsAreRefused(kind: Kind) throws {
        let object = try SchemaObject(kind)
        var count = 0
        for (field, node) in object.properties {
            for value in try object.values.forbidden(node, sample: object.fields[field] ?? "null") {
                count += 1
                let found = try object.problem(with: field, value.json)
                let problem = try #require(found, "\(kind).\(field) takes \(value.json.prefix(200)): \(value.why)")
                let names =
                    problem.contains("'\(field)'") || problem.contains("'\(field).")
                    || problem.contains("'\(field)[")
                #expect(names, "\(kind).\(field), \(value.json.prefix(200)): \(problem)")
                #expect(Self.saysWhatIsAllowed(problem), "\(kind).\(field), \(value.json.prefix(200)): \(problem)")
            }
            if object.required.contains(field) {
                #expect(try object.problem(with: field, nil)?.contains("'\(field)' is missing") == true)
            }
        }
        #expect(count > 3 * object.properties.count, "\(kind)")
    }

    @Test(arguments: kinds) func valuesThatTheSchemaAllowsAreTaken(kind: Kind) throws {
        let object = try SchemaObject(kind)
        for (field, node) in object.properties {
            for value in try object.values.allowed(node, sample: object.fields[field] ?? "null") {
                let problem = try object.problem(with: field, value)
                #expect(problem == nil, "\(kind).\(field): \(value.prefix(200))")
            }
        }
    }

    /// A name twice in an object is refused at any depth, with its path.
    @Test func aNameTwiceIsRefusedWithItsPath() throws {
        let task = try SchemaObject(.fieldTask)
        let place = try task.problem(with: "place", #"{"latitude":1,"longitude":2,"latitude":3}"#)
        #expect(place?.contains("'place.latitude': the key was given before") == true, "\(place ?? "")")
        let context = try SchemaObject(.reportingContext)
        let name = try context.problem(with: "sections", #"[{"name":"a"},{"name":"b","n\u0061me":"c"}]"#)
        #expect(name?.contains("'sections[1].name': the key was given before") == true, "\(name ?? "")")
    }

    private static func saysWhatIsAllowed(_ problem: String) -> Bool {
        ["must", "is missing", "has no field", "given before", "at most", "give one of them"]
            .contains { problem.contains($0) }
    }
}
