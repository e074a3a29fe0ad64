import DeviceClient
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import Workbench

/// The demo's verdict on defects: the correct state, then one error at a time.
@Suite(.ownThreads) struct VerdictDefectsTests {
    private static func line(
        _ number: Int, _ record: String, _ action: String, by user: String, owner: String, state: String = "Submitted",
        isDeleted: Bool = false, _ changes: [String: String] = [:]
    ) -> SandboxCompass.Line {
        SandboxCompass.Line(
            number: number, record: record, action: action, user: user, timestamp: "2026-03-0\(number) 08:00:00",
            newState: state, owner: owner, headline: "It fails", isDeleted: isDeleted, changes: changes)
    }

    /// Ana reports one defect to Bo, who opens it, and Ana changes it; one of Bo's own goes to Ana; one is deleted.
    private static let reading = DefectReading(
        [
            line(1, "S1", "Submit", by: "ana", owner: "bo", ["Severity": "1-Critical", "Priority": "3-Normal Queue"]),
            line(2, "S1", "Open", by: "bo", owner: "bo", state: "Opened"),
            line(3, "S1", "Modify", by: "ana", owner: "bo", state: "Opened", ["Severity": "2-Major"]),
            line(4, "S2", "Submit", by: "bo", owner: ""),
            line(5, "S2", "Assign", by: "eve", owner: "ana", state: "Assigned"),
            line(6, "S3", "Submit", by: "ana", owner: "eve", isDeleted: true),
        ], people: ["ana", "bo"])

    private static let first = Defect(
        record: "S1", headline: "It fails", state: "Opened", severity: "2-Major", priority: "3-Normal Queue",
        owner: "bo", submitter: "ana", submitDate: "2026-03-01 08:00:00", isAssignedToMe: true)

    private static func held(_ fields: some Encodable) throws -> DeviceObject {
        DeviceObject(position: 1, fields: Array(try JSONEncoder().encode(fields)))
    }

    private static func notice(_ code: Notice.Code, _ text: String) throws -> (ObjectID, DeviceObject) {
        let notice = Notice(
            about: nil, code: code, text: text, timestamp: Timestamp(millisecondsSinceEpoch: 1_700_000_000_000))
        return (ObjectID(kind: .notice, id: UUID()), try held(notice))
    }

    /// Bo's objects.
    private static func realm() throws -> RealmContent {
        var second = Defect(record: "S2", headline: "It fails", state: "Assigned", owner: "ana", submitter: "bo")
        (second.submitDate, second.isReportedByMe) = ("2026-03-04 08:00:00", true)
        return Dictionary(uniqueKeysWithValues: [
            try notice(.defectAssigned, "S1 (It fails) has been assigned to you"),
            try notice(.defectModified, "S1 (It fails) has been modified"),
            (ObjectID(kind: .defect, id: UUID()), try held(first)),
            (ObjectID(kind: .defect, id: UUID()), try held(second)),
        ])
    }

    private static func differences(_ realm: RealmContent) -> [String] {
        var verdict = Verdict(of: [], records: [])
        verdict.compare("bo@acme.example", login: "bo", reading, realm: realm)
        return verdict.differences.map(\.description)
    }

    @Test func stateMatchingTheHistoryHasNoDifferences() throws {
        let realm = try Self.realm()
        #expect(Self.differences(realm) == [])
        #expect(Self.reading.noticeCount == 3 && Self.reading.mirrors["ana"]?.count == 2)
    }

    @Test func missingOrDuplicateNoticeIsReported() throws {
        for object in try Self.realm().filter({ $0.key.kind == .notice }).values {
            var twice = try Self.realm()
            twice[ObjectID(kind: .notice, id: UUID())] = object
            #expect(Self.differences(twice).map { $0.contains("one too many") } == [true])
        }
        let realm = try Self.realm().filter { $0.key.kind == .defect }
        #expect(Self.differences(realm).filter { $0.contains("did not come") }.count == 2)
    }

    @Test func differingMirrorIsReported() throws {
        let defects = try Self.realm().filter { $0.key.kind == .defect }
        let notices = try Self.realm().filter { $0.key.kind == .notice }
        #expect(Self.differences(notices).filter { $0.contains("is not in the realm") }.count == 2)
        var other = Self.first
        other.severity = "1-Critical"
        var strange = Self.first
        strange.record = "S9"
        var realm = notices.merging(defects) { $1 }
        for (id, object) in defects {
            if try JSONDecoder().decode(Defect.self, from: Data(object.fields)).record == "S1" {
                realm[id] = try Self.held(other)
            }
        }
        realm[ObjectID(kind: .defect, id: UUID())] = try Self.held(strange)
        let found = Self.differences(realm)
        #expect(found.count == 2)
        #expect(found.contains { $0.contains("S9: is in the realm, and is not theirs") })
        #expect(found.contains { $0.contains("defect S1: is Defect(") })
    }
}

@Suite(.ownThreads) struct DefectPlanTests {
    @Test(arguments: [1, 2, 3, 4, 7, 40]) func defectChangesAtMostOncePerPhase(people: Int) {
        let names = (0..<people).map { "p\($0)" }
        let plan = DefectPlan(people: names, environment: "demo")
        for phase in plan.phases {
            #expect(Set(phase.map(\.headline)).count == phase.count)
            #expect(phase.allSatisfy { names.contains($0.user) && $0.headline.hasPrefix("demo: ") })
        }
        #expect(plan.phases[0].count == 2 * people)
        #expect(plan.phases[1].isEmpty == false && plan.phases[2].isEmpty == false)
        let actions = Set(plan.phases.joined().map(\.action))
        if people > 1 { #expect(actions == ["Submit", "Modify", "Assign", "Open", "Resolve"]) }
    }

    @Test func emptyHistoryHasNoDifferences() {
        let plan = DefectPlan(people: [], environment: "demo")
        #expect(plan.phases.joined().isEmpty)
    }
}
