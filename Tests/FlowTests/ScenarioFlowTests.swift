import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Testing

extension FlowTests {
    /// The guarantees to people in the back end and on a device, with each back end.
    @Suite(.serialized, SharedCluster()) struct ScenarioFlowTests {
        /// 1
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func aNewRealmIsFilledBeforeItIsInitialisedAndAgainWithoutDuplicates(backend: ScenarioBackend) async throws {
            let scenario = try await Scenario(backend, "realm")
            defer { scenario.client.shutDown() }
            let record = try await scenario.createElsewhere("before")
            try await scenario.invite()
            try await eventually("it is initialised") {
                let (isInitialized, kinds) = try scenario.realm()
                if !isInitialized { return "not yet" }
                let all: Set = ["User", "ReportingContext", "ReportingTemplate", "TimeEntry"]
                #expect(all.isSubset(of: kinds.keys), "\(kinds)")
                return nil
            }
            try await scenario.waitUntilInitialized()
            let objects = try await scenario.phone.read()
            let entries = objects.filter { $0.kind == "TimeEntry" }
            #expect(entries.map { $0.fields["backendId"] as? String } == [record])
            #expect(objects.contains { $0.kind == "ReportingTreeNode" && $0.fields["referenceId"] != nil })
            let contexts = objects.filter { $0.kind == "ReportingContext" }
            #expect(contexts.count == backend.choice(1).count)
            #expect(contexts.allSatisfy { ($0.fields["sections"] as? [Any])?.isEmpty == false })
            let before = try scenario.realm().kinds
            try await scenario.republish(to: .initializer, kinds: [.realms])
            #expect(try scenario.realm().kinds == before, "nothing was written again")
            #expect(try await scenario.phone.read().filter { $0.kind == "TimeEntry" }.count == 1)
        }

        /// 2
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func aCrashMidwayLeavesTheFlagFalseAndIsMadeUpFor(backend: ScenarioBackend) async throws {
            let scenario = try await Scenario(backend, "crash")
            defer { scenario.client.shutDown() }
            try await scenario.withSwitches(#"{"rateSlow": 1, "slowMs": 1500}"#, off: #"{"rateSlow": 0}"#) {
                let before = try await scenario.stats("slow")
                try await scenario.invite()
                try await eventually("the back end is being called") {
                    try await scenario.stats("slow") > before + 1 ? nil : "not yet"
                }
                await scenario.cluster.kill9(.initializer)
                let (isInitialized, kinds) = try scenario.realm()
                #expect(!isInitialized && kinds.isEmpty, "\(kinds)")
            }
            try scenario.cluster.start(.initializer)
            try await scenario.waitUntilInitialized()
            #expect(try await scenario.phone.read().contains { $0.kind == "ReportingTemplate" })
        }

        /// 3
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func incompleteDraftIsInvalidWithAMessagePerProblemAndReleasedOnceItIsCompleted(
            backend: ScenarioBackend
        ) async throws {
            try await Scenario.run(backend, "draft") { scenario in
                let id = try await scenario.submit(#""durationSeconds":0"#, project: nil)
                try await scenario.expect(id, .invalid)
                let missing = backend.choice(1).map { "\($0.context) is missing" }
                let messages = try await scenario.lines(id).compactMap(\.message)
                #expect(messages.sorted() == (missing + ["Duration must be more than 0"]).sorted())
                #expect(try await scenario.noticeCodes() == ["entry-invalid"])
                let fields = try await scenario.reporting(1)
                try await scenario.phone.write("patch", id.text, "{\(fields),\"durationSeconds\":3600}")
                try await scenario.expect(id, .released)
                #expect(try await scenario.record(of: id).isLive)
            }
        }

        /// 4
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func entryIsReleasedOnlyAfterReadingItBack(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "read-back") { scenario in
                let switches =
                    switch backend {
                    case .sap: (#"{"savesInProcess": true}"#, #"{"savesInProcess": false}"#)
                    case .economic: (#"{"rate503OnReads": 1}"#, #"{"rate503OnReads": 0}"#)
                    }
                var id = UUID()
                try await scenario.withSwitches(switches.0, off: switches.1) {
                    id = try await scenario.submit()
                    try await eventually("it waits for its release") {
                        let waiting = try await scenario.cluster.runCommand(["deferred", "list", "--json"])
                        return waiting.contains(id.text) ? nil : waiting
                    }
                    #expect(try await scenario.record(of: id).isLive)
                    #expect(try await scenario.lines(id).map(\.status) == ["draft", "submitted"])
                }
                if backend == .sap { try await scenario.move(try await scenario.record(of: id).id, to: .released) }
                try await scenario.expect(id, .released)
                #expect(try await scenario.records(of: id).count == 1)
            }
        }

        /// 5
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func aTimeOutDoesNotMakeASecondRecord(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "time-out") { scenario in
                var id = UUID()
                // A call ends after two seconds.
                let slow = #"{"rateSlowAfterWrite": 1, "slowMs": 20000}"#
                try await scenario.withSwitches(slow, off: #"{"rateSlowAfterWrite": 0, "slowMs": 2000}"#) {
                    let before = try await scenario.stats("slowAfterWrite")
                    id = try await scenario.submit()
                    try await eventually("it is recorded") {
                        try await scenario.stats("slowAfterWrite") > before ? nil : "not yet"
                    }
                    try await scenario.expect(id, .released)
                }
                let record = try await scenario.record(of: id)
                #expect(try await scenario.entry(id)?["backendId"] as? String == record.id)
                #expect(try await scenario.lines(id).map(\.status) == ["draft", "submitted", "released"])
            }
        }

        /// 6
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func aDeletedProjectLeavesThePickersAndOldEntriesStillResolve(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "deleted") { scenario in
                let id = try await scenario.submit(project: 3)
                try await scenario.expect(id, .released)
                try await scenario.post("/sandbox/organisation", backend.organisation(projects: [4], deleted: [3]))
                try await eventually("the choices are others") {
                    let nodes = try await scenario.phone.read().filter {
                        $0.kind == "ReportingTreeNode" && $0.realm.hasPrefix("/catalogues/")
                    }
                    let offered = Set(nodes.compactMap { $0.fields["referenceId"] as? String })
                    let expected = Set([1, 2, 4].map(backend.project))
                    return offered.isSuperset(of: expected) && !offered.contains(backend.project(3))
                        ? nil : "\(offered)"
                }
                let objects = try await scenario.phone.read()
                let entry = try #require(objects.first { $0.id == id.text })
                let selected = (entry.fields["reporting"] as? [[String: String]] ?? []).compactMap { $0["node"] }
                #expect(selected.count == backend.choice(3).count && entry.fields["status"] as? String == "released")
                for node in selected {
                    #expect(objects.contains { $0.kind == "ReportingTreeNode" && $0.id == node }, "\(node) resolves")
                }
            }
        }

        /// 7
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func newestLogLineHasTheStatusAndRepeatsChangeNothing(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "log") { scenario in
                let id = try await scenario.submit()
                try await scenario.expect(id, .released)
                let record = try await scenario.record(of: id).id
                let moves: [EntryStatus] =
                    switch backend {
                    case .sap: [.approved, .released, .rejected]
                    case .economic: [.approved, .released, .approved, .recorded]
                    }
                for status in moves {
                    try await scenario.move(record, to: status)
                    try await scenario.expect(id, status)
                }
                let before = try await scenario.lines(id).map(\.status)
                #expect(before == ["draft", "submitted", "released"] + moves.map(\.rawValue))
                // All events are republished after the last one was processed.
                try await scenario.republish(to: .submitter, kinds: [.timeEntry, .seenRecord])
                try await scenario.expect(id, try #require(moves.last))
                #expect(try await scenario.lines(id).map(\.status) == before)
                #expect(try await scenario.noticeCodes() == (backend == .sap ? ["entry-rejected"] : []))
            }
        }

        /// 8
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func busyBackEndIsRetriedWithoutInvalidEntries(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "busy") { scenario in
                try await scenario.expect(try await scenario.submit(), .released)
                var faults = [
                    (#"{"rate429": 1, "retryAfterSeconds": 1}"#, #"{"rate429": 0}"#, "answered429"),
                    (#"{"rate503": 1}"#, #"{"rate503": 0}"#, "answered503"),
                    (#"{"rate500AfterWrite": 1}"#, #"{"rate500AfterWrite": 0}"#, "failedAfterWrite"),
                ]
                if backend == .sap { faults.append((#"{}"#, #"{}"#, "csrfRefused")) }
                for (on, off, count) in faults {
                    let before = try await scenario.stats(count)
                    var id = UUID()
                    try await scenario.withSwitches(on, off: off) {
                        // SAP then answers 403 with `x-csrf-token: Required`.
                        if count == "csrfRefused" { try await scenario.post("/sandbox/sessions/end", "{}") }
                        id = try await scenario.submit()
                        try await eventually("\(count)") {
                            try await scenario.stats(count) > before ? nil : "not yet"
                        }
                    }
                    try await scenario.expect(id, .released)
                    let statuses = try await scenario.lines(id).map(\.status)
                    #expect(statuses == ["draft", "submitted", "released"], "\(count)")
                    #expect(try await scenario.record(of: id).isLive, "\(count)")
                }
            }
        }

        /// 8b: seconds become hours with two decimals, half up.
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func anHourAndAHalfIsOnePointFiveHours(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "hours") { scenario in
                let day = scenario.today.adding(days: -1)
                let interval = """
                    "timeType":"interval","startTime":"\(day)T08:00:00+02:00","endTime":"\(day)T09:30:00+02:00"
                    """
                let lengths: [(fields: String, seconds: Int?, hundredths: Int)] = [
                    (#""durationSeconds":5400"#, 5_400, 150), (#""durationSeconds":5417"#, 5_417, 150),
                    (#""durationSeconds":5418"#, 5_418, 151), (interval, nil, 150),
                ]
                for (fields, seconds, hundredths) in lengths {
                    let id = try await scenario.submit(fields)
                    try await scenario.expect(id, .released)
                    #expect(try await scenario.record(of: id).hours == Hours(hundredths: hundredths), "\(fields)")
                    let entry = try #require(try await scenario.entry(id))
                    #expect(entry["durationSeconds"] as? Int == seconds, "it keeps its own")
                    #expect(entry["startTime"] as? String == (seconds == nil ? "\(day)T08:00:00+02:00" : nil))
                }
            }
        }

        /// 9
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func recordAddedInTheBackEndArrives(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "elsewhere") { scenario in
                let record = try await scenario.createElsewhere("made elsewhere")
                try await eventually("it appears") {
                    let entries = try await scenario.phone.read().filter { $0.kind == "TimeEntry" }.map(\.fields)
                    guard let entry = entries.first(where: { $0["backendId"] as? String == record }) else {
                        return "\(entries)"
                    }
                    let reporting = entry["reporting"] as? [Any]
                    #expect(entry["status"] as? String == "released" && entry["durationSeconds"] as? Int == 1_800)
                    #expect(reporting?.count == backend.choice(1).count)
                    return nil
                }
            }
        }

        /// The message of a rejection is the back end's.
        @Test(.timeLimit(.minutes(20)), arguments: ScenarioBackend.allCases)
        func rejectionHasTheBackEndsMessage(backend: ScenarioBackend) async throws {
            try await Scenario.run(backend, "locked") { scenario in
                let day = scenario.today.adding(days: -1)
                try await scenario.withSwitches(#"{"lockedThrough": "\#(day)"}"#, off: #"{"lockedThrough": null}"#) {
                    let id = try await scenario.submit()
                    try await scenario.expect(id, .invalid)
                    let message = try await scenario.lines(id).last?.message ?? ""
                    #expect(
                        message.contains(backend == .sap ? "locked for time recording" : "closed accounting period"))
                }
            }
        }
    }
}
