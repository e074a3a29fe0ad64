import DeviceClient
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// A device's picker and the submitter, with the same stored objects and a back end.
@Suite(.ownThreads) struct PickerSubmissionTests {
    @Test(arguments: BackendWorld.Vendor.allCases)
    func offeredSelectionsAreReleased(vendor: BackendWorld.Vendor) async throws {
        try await BackendWorld.run(vendor) { world in
            let created = try world.picker()
            let picker = try #require(created)
            var entry = world.draft()
            entry.reportingTemplate = picker.templates.first?.id
            entry.reporting = []
            let count = picker.form(for: entry).choices.count
            #expect(count >= 2)
            for index in 0..<count {
                let choice = picker.form(for: entry).choices[index]
                let option = try #require(choice.sections.first?.options.first, "\(choice.name)")
                entry.reporting = picker.selections(bySelecting: option.id, for: choice.id, of: entry)
            }
            #expect(entry.reporting.count == count)
            #expect(picker.form(for: entry).problems == [])
            _ = try await world.release(UUID(), entry)

            // With SAP the next selection depends on the first; the emulator's activity is of all projects.
            entry.reporting.removeFirst()
            let problems = picker.form(for: entry).problems
            let codes: Set<ReportingProblem.Code> =
                vendor == .sap ? [.selectionMissing, .nodeExcluded] : [.selectionMissing]
            #expect(Set(problems.map(\.code)) == codes)
            let id = UUID()
            try world.put(id, entry)
            try await world.work(id)
            #expect(try world.entry(id)?.status == .invalid)
            let messages = try world.lines(id).filter { $0.status == .invalid }.compactMap(\.message)
            #expect(messages.sorted() == problems.map(\.message).sorted())
        }
    }
}

extension BackendWorld {
    /// Creates the picker of a device with the stored objects.
    fileprivate mutating func picker() throws -> ReportingPicker? {
        var contents = [
            realm: try content(realm, [.user, .reportingTemplate, .reportingContext, .reportingTreeNode])
        ]
        let user = contents[realm]?.first { $0.key.kind == .user }?.value
        let catalogue = try user.flatMap {
            try JSONDecoder().decode(User.self, from: Data($0.fields)).catalogue
        }
        if let catalogue {
            contents[.catalogue(catalogue)] = try content(.catalogue(catalogue), [.reportingTreeNode])
        }
        return ReportingPicker(ofPerson: realm, in: contents)
    }

    private mutating func content(_ path: RealmPath, _ kinds: [Kind]) throws -> RealmContent {
        let number = try acme.realm(path)
        var content: RealmContent = [:]
        for row in try acme.connection.run(RealmObject.load(kinds: kinds, realm: number, in: acme.id)) {
            guard let object = try RealmObject(row), let fields = object.fields else { continue }
            content[ObjectID(kind: object.key.kind, id: object.key.id)] = DeviceObject(
                position: object.position, fields: Array(fields.bytes))
        }
        return content
    }
}
