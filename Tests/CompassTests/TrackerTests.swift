import Compass
import Foundation
import TestSupport
import Testing

@testable import Sandbox

/// Trackers loaded from the test data.
@Suite(.ownThreads) struct TrackerTests {
    private static let bug = """
        {"id": 7, "product": "Webtools", "component": "UI", "headline": "new", "severity": "normal", "priority": "P2",
         "status": "RESOLVED", "resolution": "FIXED", "created": "1998-05-20T07:00:00Z",
         "submitter": {"id": "u-1", "name": "Ana"}, "owner": {"id": "u-3", "name": null},
         "history": [
          {"when": "1998-09-01T00:50:43Z", "who": {"id": "u-2", "name": "Bo"}, "changes": [
           {"field": "assigned_to", "from": "u-1", "to": "u-3"},
           {"field": "bug_status", "from": "NEW", "to": "ASSIGNED"}]},
          {"when": "1998-09-02T00:50:43Z", "who": {"id": "u-3", "name": null}, "changes": [
           {"field": "bug_status", "from": "ASSIGNED", "to": "RESOLVED"},
           {"field": "resolution", "from": "", "to": "FIXED"},
           {"field": "short_desc", "from": "old", "to": "new"}]},
          {"when": "1998-09-03T00:50:43Z", "who": {"id": "u-3", "name": null}, "changes": [
           {"field": "cc", "from": "", "to": "u-4"}]}]}
        """

    @Test func bugIsReplayedFromItsActions() throws {
        let tracker = try CompassTracker(lines: [Data(Self.bug.replacing("\n", with: " ").utf8)])
        let changes = try #require(tracker.defects.first).changes
        #expect(changes.map(\.action) == [nil, "Assign", "Resolve", "Modify"])
        #expect(changes.map(\.user) == ["u-1", "u-2", "u-3", "u-3"])
        #expect(changes.map(\.state) == ["Submitted", "Opened", "Resolved", "Resolved"])
        #expect(changes[0].fields["Owner"] == "u-1" && changes[0].fields["Headline"] == "old")
        #expect(changes[0].fields["Resolution"] == "" && changes[1].fields == ["Owner": "u-3"])
        #expect(changes[2].fields == ["Resolution": "FIXED", "Headline": "new"] && changes[3].fields == [:])
        #expect(tracker.people == ["u-1": "Ana", "u-2": "Bo", "u-3": "u-3"])
        #expect(tracker.projects == ["Webtools": ["UI"]])
    }

    @Test func malformedLineIsReported() throws {
        let error = #expect(throws: EmulatorError.self) {
            try CompassTracker(lines: [Data(Self.bug.utf8), Data("{}".utf8)], of: "x.jsonl")
        }
        #expect(error?.description.hasPrefix("x.jsonl, line 2: ") == true)
    }
}

/// Needs the folder with the trackers in the environment variable `FIELDPOST_TEST_DATA`; without it these tests are
/// disabled and report the reason.
@Suite(
    .enabled(
        if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
        "FIELDPOST_TEST_DATA does not name the folder with defects-mozilla-history.jsonl.gz"))
struct TrackerDataTests {
    @Test(arguments: [
        ("defects-mozilla-history.jsonl.gz", 52), ("defects-eclipse-history.jsonl.gz", 1_228),
        ("defects-tidev.jsonl.gz", 2_183),
    ]) func aRealTrackerIsLoaded(name: String, count: Int) async throws {
        let folder = ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] ?? ""
        let path = folder + "/" + name
        let tracker = try CompassTracker(path: path)
        #expect(tracker.defects.count == count)
        try await CompassFixture.run { fixture in
            #expect(try CompassTracker.load(path, into: fixture.system, password: "x") == count)
            let compass = fixture.compass(as: CompassFixture.service)
            let rows = try await compass.rows(
                of: try await fixture.query(compass, ["id", "Headline", "State", "Owner", "Submit_Date"]))
            #expect(rows.count == count && Set(rows.compactMap { $0["id"] }).count == count)
            #expect(rows.allSatisfy { CompassTime($0["Submit_Date"] ?? "") != nil && $0["Headline"]?.isEmpty == false })
            let history = try await fixture.query(
                compass, ["id", "history.action_name", "history.action_timestamp", "history.user_name"], name: "H")
            let done = try await compass.rows(of: history)
            #expect(done.count == tracker.defects.reduce(0) { $0 + $1.changes.count })
            // Each ends in the state and with the owner that the tracker reports.
            for (row, defect) in zip(rows, tracker.defects) {
                let owner = defect.changes.compactMap { $0.fields["Owner"] }.last ?? ""
                #expect(row["Owner"] == owner && row["State"] == defect.changes.last?.state, "\(defect.key)")
            }
            print("\(name): \(done.count) changes by \(tracker.people.count) people")
        }
    }
}
