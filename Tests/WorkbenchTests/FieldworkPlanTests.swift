import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import Workbench

/// The plan of tasks and calendars.
@Suite(.ownThreads) struct FieldworkPlanTests {
    @Test func theSameSeedMakesTheSamePlan() {
        #expect(GeneratedFieldwork.make(people: 7, seed: 3) == GeneratedFieldwork.make(people: 7, seed: 3))
        #expect(GeneratedFieldwork.make(people: 7, seed: 3) != GeneratedFieldwork.make(people: 7, seed: 4))
    }

    @Test(arguments: [1, 2, 3, 6, 40]) func everyPersonCanDoTheirPlan(count: Int) {
        let plan = GeneratedFieldwork.make(people: count, seed: 1)
        expectWhole(plan, people: count)
        #expect(plan.tasks.count == count * 6 && plan.editCount == count * 4)
        guard count == 40 else { return }
        #expect(Set(plan.tasks.map { "\($0.end)".prefix(4) }).count == 4, "all ends occur")
        #expect(plan.tasks.contains { $0.assignee != nil } && plan.tasks.contains { $0.definition.place == nil })
    }

    private func expectWhole(_ plan: FieldworkPlan, people count: Int) {
        let allIndices = 0..<count
        let members = Dictionary(uniqueKeysWithValues: plan.crews.map { ($0.id, $0.members) })
        let managers = FieldworkPlan.managers(among: count)
        for crew in plan.crews {
            #expect(!crew.members.isEmpty && Set(crew.members).count == crew.members.count)
            #expect(crew.members.allSatisfy(allIndices.contains))
        }
        for task in plan.tasks {
            #expect(managers.contains(task.manager))
            let team = task.definition.team
            #expect(team == nil || members[team ?? task.id] != nil)
            guard case .completed(_, let doer) = task.end else { continue }
            if let team {
                #expect(members[team]?.contains(doer) == true)
            } else {
                #expect(task.assignee == doer || task.manager == doer)
            }
        }
        #expect(Set(plan.tasks.map(\.id)).count == plan.tasks.count)
        for edit in plan.calendars.joined() {
            #expect(allIndices.contains(edit.owner) && edit.recipients.allSatisfy(allIndices.contains))
            #expect(!edit.recipients.contains(edit.owner))
        }
    }

    @Test func anItemIsTheSameAsLongAsItsOwnerIs() throws {
        func line(_ chair: String, _ times: [String]) -> String {
            let schedule = times.map { #"{"time":"\#($0)","day":"Monday"}"# }.joined(separator: ",")
            return #"{"file":"a","op":"change","commit":"c","authored":"2014-01-02T03:04:05+00:00","meeting":"#
                + #"{"project":"P","schedule":[\#(schedule)],"chair":"\#(chair)"}}"#
        }
        let text = [
            line("Ana, Bo", ["0900"]), line("Ana", ["1000", "1100"]), line("Ana", ["1000"]),
            line("Ana", ["1000", "1200"]), line("Bo", ["1000"]), line("", ["1000"]),
        ].joined(separator: "\n")
        let edits = try #require(try FieldworkData.calendars(Array(text.utf8), people: 5).first)
        #expect(edits.map(\.owner) == [0, 0, 0, 0, 1, 1])
        #expect(edits.map(\.recipients) == [[1], [], [], [], [], []])
        let ids = edits.map { $0.items.map(\.id) }
        #expect(ids[0][0] == ids[1][0] && ids[1][0] == ids[3][0] && ids[3][0] != ids[4][0] && ids[4] == ids[5])
        #expect(ids[1][1] != ids[3][1], "what was deleted is not made again")
    }

    @Test func unreadableFieldIsNamed() throws {
        #expect(throws: PublicDataProblem.self) { try FieldworkData.calendars(Array("{}".utf8), people: 1) }
        let header = "SRNumber,RequestType,Status,AssignTo,CreatedDate,ServiceDate,ClosedDate,Address,ZipCode,Latitude"
        for (table, problem) in [
            (header + "\n", "the first record names no column 'Longitude'"),
            (header + ",Longitude\n1,Bulky,Lost,,,,,,,,\n", "record 2: unknown 'Status': 'Lost'"),
        ] {
            do {
                _ = try FieldworkData.tasks(CSV(table.utf8), people: 1)
                Issue.record("it was taken")
            } catch {
                #expect("\(error)" == "tasks-la311-2017.csv: " + problem)
            }
        }
    }

    /// Needs the folder with the data in the environment variable `FIELDPOST_TEST_DATA`.
    @Test(
        .enabled(
            if: ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"] != nil,
            "FIELDPOST_TEST_DATA does not name the folder with tasks-la311-2017.csv.gz"))
    func theRealOnes() throws {
        let folder = try #require(ProcessInfo.processInfo.environment["FIELDPOST_TEST_DATA"])
        let plan = try #require(try FieldworkData.load(folder, people: 150))
        expectWhole(plan, people: 150)
        #expect(plan.crews.count == 34 && plan.tasks.count == 9_999)
        #expect(plan.editCount == 1_304 && plan.calendars.count == 259)
        let ends = Dictionary(grouping: plan.tasks) { "\($0.end)".prefix(4) }.mapValues(\.count)
        #expect(ends == ["comp": 9_739, "canc": 246, "refe": 9, "open": 5])
        #expect(plan.tasks.count { $0.definition.place?.latitude == nil } == 1_753)
    }
}
