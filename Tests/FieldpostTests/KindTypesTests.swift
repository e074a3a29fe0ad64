import DeviceClient
import Essentials
import Foundation
import Model
import TestSupport
import Testing

/// `fieldpost schema generate swift`, `typescript` and `kotlin`.
///
/// The output for `Types/kinds.yaml` is in the same folder; `WRITE_SAMPLES=yes` replaces it. `Types/Kinds.swift` is
/// compiled with these tests.
@Suite(.ownThreads) struct KindTypesTests {
    private static let folder = projectFolder.appending(path: "Tests/FieldpostTests/Types")

    private static func generate(_ language: String, _ file: URL) throws -> String {
        let result = try fieldpost("schema", "generate", language, file.path)
        try #require(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        return result.output
    }

    @Test(arguments: ["swift", "typescript", "kotlin"]) func outputIsTheSample(language: String) throws {
        let names = ["swift": "Kinds.swift", "typescript": "kinds.ts", "kotlin": "Kinds.kt"]
        let sample = Self.folder.appending(path: try #require(names[language]))
        let output = try Self.generate(language, Self.folder.appending(path: "kinds.yaml"))
        if ProcessInfo.processInfo.environment["WRITE_SAMPLES"] != nil { try Data(output.utf8).write(to: sample) }
        #expect(output == (try String(contentsOf: sample, encoding: .utf8)))
        #expect(output.hasPrefix("// Generated: fieldpost schema generate \(language)\n") && output.hasSuffix("\n"))
    }

    @Test func problemsAreThoseOfValidate() throws {
        try withFolder { folder in
            let file = folder.appending(path: "kinds.yaml").path
            try Data("kinds: {A: {realms: [user]}}".utf8).write(to: URL(filePath: file))
            let expected = try fieldpost("schema", "validate", file)
            for command in [["swift", file], ["powersync", "--language", "sql", "--kinds", file]] {
                let result = try fieldpost(["schema", "generate"] + command)
                #expect(result.status == 1 && result.output.isEmpty && result.errors == expected.errors)
            }
        }
        #expect(try fieldpost("schema", "generate", "swift").status == 2)
    }

    // MARK: Swift

    private static let id = UUID()
    private static let stored = """
        {"site":"Roof","state":"archived","day":"2026-11-28","score":1,"later":{"a":[1,null,true]},"level":null,
        "place":{"latitude":55.5,"floor":2,"note":"x","new":[0.5]},"tags":["red",null,"blue"],"counts":{"a":1},
        "photos":"many"}
        """

    @Test func decodedObjectKeepsUnknownValues() throws {
        let object = try Kinds.Inspection(DeviceObject(position: 7, fields: Array(Self.stored.utf8)))
        #expect(object.site == "Roof" && object.day == Day("2026-11-28") && object.score == 1)
        #expect(object.state == .init(rawValue: "archived") && object.level == nil)
        #expect(object.place?.latitude == 55.5 && object.place?.floor == 2 && object.counts == ["a": 1])
        #expect(object.tags == [.red, nil, .init(rawValue: "blue")])
        // A later version may have another type.
        #expect(object.photos == nil && object.fields["photos"] == .text("many"))
        let encoded = try JSONEncoder().encode(object)
        #expect(try JSONCanonical.bytes(of: Array(encoded)) == JSONCanonical.bytes(of: Array(Self.stored.utf8)))
        #expect(try JSONDecoder().decode(Kinds.Inspection.self, from: encoded) == object)
    }

    private func text(_ write: ObjectWrite) -> String {
        String(decoding: write.mutation.fields ?? [], as: UTF8.self)
    }

    @Test func changeHasOnlyTheGivenFields() throws {
        let object = try Kinds.Inspection(DeviceObject(position: 7, fields: Array(Self.stored.utf8)))
        var place = try #require(object.place)
        place.latitude = 56
        place.floor = nil
        let team = RealmPath.team(Self.id)
        let write = Kinds.Inspection.Change(day: .null, place: .to(place)).of(Self.id, in: team)
        #expect(write.mutation.operation == .patch && write.realm == team && write.mutation.id == Self.id)
        #expect(
            text(write) == #"{"day":null,"place":{"floor":null,"latitude":56.0,"new":[0.5],"note":"x"}}"#)
        #expect(
            text(Kinds.Inspection.Change(approval: .to("b"), level: .to("a")).of(Self.id, in: team))
                == #"{"approval":"b","level":"a"}"#)
    }

    @Test func newObjectIsShownAndDeleted() throws {
        var state = DeviceState(clientID: UUID())
        let new = Kinds.Inspection.New(
            site: "Roof", state: .inProgress, level: nil, seenAt: Timestamp("2026-11-28T03:00:00Z"), photos: [Self.id],
            place: .init(latitude: 1, floor: nil, note: .bool(true)))
        let write = try new.inUser("Ana@example.com", id: Self.id)
        _ = try state.enqueue(write)
        let content = state.content(of: try RealmPath.user("ana@example.com"))
        let object = try #require(try content.objects(Kinds.Inspection.self)[Self.id])
        #expect(object.state == .inProgress && object.state?.rawValue == "in progress" && object.photos == [Self.id])
        #expect(object.place?.note == .bool(true) && object.seenAt == Timestamp("2026-11-28T03:00:00Z"))
        #expect(object.fields["level"] == .null && object.fields["day"] == nil)
        #expect(try content.objects(Kinds.Error.self).isEmpty)
        _ = try state.enqueue(Kinds.Inspection.delete(Self.id, in: write.realm))
        #expect(state.content(of: write.realm).isEmpty)
    }
}
