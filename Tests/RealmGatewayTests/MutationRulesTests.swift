import Access
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

@Suite(.ownThreads) struct MutationRulesTests {
    private typealias Decision = Result<MutationChange, MutationProblem>

    private func decide(
        _ operation: Mutation.Operation, _ fields: String?, on current: String? = nil, kind: Kind = .timeEntry
    ) -> Decision {
        Result { () throws(MutationProblem) in
            try MutationRules.decide(
                Mutation(operation: operation, kind: kind, id: UUID(), fields: fields.map { Array($0.utf8) }),
                current: current.map { $0 == "tombstone" ? .tombstone : .live(fields: Array($0.utf8)) })
        }
    }

    private func code(_ decision: Decision) -> MutationProblem.Code? {
        if case .failure(let problem) = decision { problem.code } else { nil }
    }

    private func merged(_ text: String) -> Decision { .success(.merge(fields: Array(text.utf8))) }

    @Test func newEntryIsADraftByDefault() {
        #expect(
            decide(.put, #"{"text":"a"}"#) == .success(.insert(fields: Array(#"{"text":"a","status":"draft"}"#.utf8))))
        let suggestion = #"{"status":"suggestion"}"#
        #expect(decide(.put, suggestion) == .success(.insert(fields: Array(suggestion.utf8))))
        #expect(code(decide(.put, #"{"status":"released"}"#)) == .statusNotAllowed)
    }

    @Test func putReplacesOnlyTheDevicesFields() {
        let stored = #"{"status":"released","backendId":"7","text":"a","durationSeconds":60}"#
        #expect(
            decide(.put, #"{"text":"b"}"#, on: stored)
                == merged(#"{"text":"b","durationSeconds":null,"submitRequested":true}"#))
    }

    /// An entry that the server has taken over stays to be submitted, unless the device writes `false`.
    @Test func onlyAnExplicitFalseWithdrawsASubmission() {
        for status in EntryStatus.allCases where !status.isClosed {
            let stored = #"{"status":"\#(status.rawValue)"}"#
            let requested = #"{"status":"\#(status.rawValue)","submitRequested":true}"#
            let withdrawn = #"{"status":"\#(status.rawValue)","submitRequested":false}"#
            let follows = status.isHandedIn ? #","submitRequested":true"# : ""
            for operation in [Mutation.Operation.put, .patch] {
                #expect(decide(operation, #"{"text":"a"}"#, on: stored) == merged(#"{"text":"a"\#(follows)}"#))
                #expect(decide(operation, #"{"text":"a"}"#, on: requested) == merged(#"{"text":"a"}"#))
                #expect(decide(operation, #"{"text":"a"}"#, on: withdrawn) == merged(#"{"text":"a"}"#))
                #expect(
                    decide(operation, #"{"submitRequested":null}"#, on: requested)
                        == merged(#"{"submitRequested":true}"#))
                #expect(
                    decide(operation, #"{"submitRequested":null}"#, on: withdrawn)
                        == merged(#"{"submitRequested":false}"#))
                let back = #"{"text":"a","submitRequested":false}"#
                #expect(decide(operation, back, on: requested) == merged(back))
            }
        }
    }

    /// For example, a period was reopened: without a change, no service would process the request.
    @Test func repeatedRequestForARejectedEntryIsAChange() {
        let stored = #"{"status":"invalid","submitRequested":true}"#
        let again = #"{"submitRequested":true}"#
        #expect(decide(.patch, again, on: stored) == merged(#"{"submitRequested":true,"status":"draft"}"#))
        #expect(decide(.patch, #"{"text":"a"}"#, on: stored) == merged(#"{"text":"a"}"#))
        let draft = #"{"submitRequested":true,"status":"draft"}"#
        #expect(decide(.patch, draft, on: stored) == merged(draft))
        #expect(decide(.patch, again, on: #"{"status":"released","submitRequested":true}"#) == merged(again))
    }

    @Test(arguments: [
        ("record", #""../../workspace""#), ("record", #""S/1""#), ("record", #""S?operation=Commit""#),
        ("record", #""S#1""#), ("record", #""S\r\nX: y""#), ("record", #""*""#), ("record", #""..""#),
        ("record", #"" ""#), ("record", #""Ø1""#), ("record", "\"\(String(repeating: "S", count: 5_000))\""),
        ("choicesOf", "[\(Array(repeating: #""Severity""#, count: 21).joined(separator: ","))]"),
        ("choicesOf", #"["a\nb"]"#), ("actionName", "\"\(String(repeating: "x", count: 101))\""),
        ("fields", #"{"a\u0007b": "x"}"#), ("query", #""7/resultsets""#), ("folder", #""..""#), ("fromRow", "-1"),
        ("fromRow", "50000"), ("fromRow", #""0""#),
    ]) func malformedDefectCommandIsRejected(name: String, value: String) {
        let fields = #"{"operation": "modify", "\#(name)": \#(value)}"#
        for (operation, current) in [(Mutation.Operation.put, nil), (.patch, #"{"operation": "modify"}"#)] {
            let decision = decide(operation, fields, on: current, kind: .defectCommand)
            #expect(code(decision) == .invalidField, "\(decision)")
        }
        let allowed = #"{"operation": "modify", "record": "SAMPL00000001", "choicesOf": ["Severity"]}"#
        #expect(code(decide(.put, allowed, kind: .defectCommand)) == nil)
    }

    @Test func patchIsMergedUnchanged() {
        #expect(decide(.patch, #"{ "text":null }"#, on: #"{"status":"draft"}"#) == merged(#"{ "text":null }"#))
    }

    @Test(arguments: [
        (#"{"backendId":"7"}"#, MutationProblem.Code.fieldNotAllowed, "backendId"),
        (#"{"deleteRequested":true}"#, .fieldNotAllowed, "deleteRequested"),
        (#"{"statusAt":null}"#, .fieldNotAllowed, "statusAt"),
        (#"{"color":"red"}"#, .unknownField, "color"), (#"{"text":7}"#, .invalidField, "text"),
        (#"{"status":null}"#, .invalidField, "status"), (#"{"status":"lost"}"#, .invalidField, "status"),
        (#"{"reporting":[{"context":"x","node":"y"}]}"#, .invalidField, "reporting"),
        (#"{"reporting":[{"context":"ecede996-1b85-45dc-9ee0-89da88f97441"}]}"#, .invalidField, "reporting"),
        (#"{"reporting":{}}"#, .invalidField, "reporting"),
        (#"{"entryDate":"2015-02-30"}"#, .invalidField, "entryDate"),
        (#"{"startTime":"08:00"}"#, .invalidField, "startTime"),
        (#"{"durationSeconds":1.5}"#, .invalidField, "durationSeconds"),
        (#"{"durationSeconds":"60"}"#, .invalidField, "durationSeconds"),
        (#"{"durationSeconds":9999999999}"#, .invalidField, "durationSeconds"),
        (#"{"timeType":"week"}"#, .invalidField, "timeType"),
        (#"{"submitRequested":1}"#, .invalidField, "submitRequested"),
        (#"{"reportingTemplate":"1"}"#, .invalidField, "reportingTemplate"),
        (#"{"createdOn":"today"}"#, .invalidField, "createdOn"),
        (#"["text"]"#, .invalidJSON, "object"), (#"{"text":"\u0000"}"#, .invalidJSON, "u0000"),
        ("", .invalidJSON, "byte 0"),
    ])
    func forbiddenFieldIsRejectedByName(fields: String, code: MutationProblem.Code, naming: String) {
        for decision in [decide(.put, fields), decide(.patch, fields, on: #"{"status":"draft"}"#)] {
            guard case .failure(let problem) = decision else {
                Issue.record("\(fields) was accepted")
                continue
            }
            #expect(problem.code == code)
            #expect(problem.detail.contains(naming), "\(problem.detail)")
        }
    }

    @Test func everyDeviceFieldOfTheGoldenFileIsAccepted() throws {
        let entry = try JSONObject(Array(try golden("TimeEntry.v1")))
        for name in Kind.timeEntry.fieldNames
        where !["status", "backendId", "deleteRequested", "statusAt"].contains(name) {
            let value = String(decoding: try #require(entry.value(of: name)), as: UTF8.self)
            for raw in [value, "null"] {
                #expect(decide(.patch, "{\"\(name)\":\(raw)}", on: "{}") == merged("{\"\(name)\":\(raw)}"))
            }
        }
    }

    @Test func serverKindsAreRejected() {
        let own: [Kind] = [
            .timeEntry, .appointment, .note, .sharedItem, .fieldTask, .notice, .defectCommand, .deletedObject,
            .endedShare, .taskNote,
        ]
        for kind in Kind.allCases where !own.contains(kind) {
            for operation in Mutation.Operation.allCases {
                #expect(code(decide(operation, operation == .delete ? nil : "{}", kind: kind)) == .kindNotAllowed)
            }
        }
    }

    @Test func sizesAreLimited() {
        let text = { (count: Int) in "{\"text\":\"" + String(repeating: "a", count: count) + "\"}" }
        #expect(code(decide(.put, text(1000))) == nil)
        #expect(code(decide(.put, text(1001))) == .invalidField)
        #expect(code(decide(.put, text(65_536))) == .tooLarge)
        let stored = "{\"backendId\":\"" + String(repeating: "a", count: 65_000) + "\"}"
        #expect(code(decide(.patch, text(900), on: stored)) == .tooLarge)
    }

    @Test func deviceMaySetSuggestionAndDraft() {
        let toDraft = #"{"status":"draft"}"#
        for status in EntryStatus.allCases {
            let decision = decide(.patch, toDraft, on: #"{"status":"\#(status.rawValue)"}"#)
            switch status {
            case .suggestion, .draft, .invalid: #expect(decision == merged(toDraft))
            case .submitted, .released, .rejected, .approved: #expect(code(decision) == .statusNotAllowed)
            case .recorded: #expect(code(decision) == .closed)
            }
        }
        #expect(code(decide(.patch, #"{"status":"suggestion"}"#, on: toDraft)) == .statusNotAllowed)
        #expect(code(decide(.patch, #"{"status":"approved"}"#, on: #"{"status":"approved"}"#)) == .statusNotAllowed)
    }

    @Test func deletionDependsOnTheEntrysStatus() {
        for status in EntryStatus.allCases {
            let new = decide(.delete, nil, on: #"{"status":"\#(status.rawValue)"}"#)
            let inBackend = decide(.delete, nil, on: #"{"status":"\#(status.rawValue)","backendId":"7"}"#)
            switch status {
            case .suggestion, .draft, .invalid:
                #expect(new == .success(.tombstone))
                #expect(inBackend == .success(.requestDeletion))
            case .submitted, .released, .rejected, .approved:
                #expect(new == .success(.requestDeletion))
                #expect(inBackend == .success(.requestDeletion))
            case .recorded:
                #expect(code(new) == .closed)
                #expect(code(inBackend) == .closed)
            }
        }
        #expect(decide(.delete, nil, on: "tombstone") == .success(.unchanged))
        #expect(decide(.delete, nil) == .success(.unchanged))
        let pending = #"{"status":"released","deleteRequested":true}"#
        #expect(decide(.delete, nil, on: pending) == .success(.unchanged))
        #expect(code(decide(.patch, #"{"text":"a"}"#, on: pending)) == .deletionPending)
        #expect(code(decide(.delete, "{}", on: pending)) == .fieldsMismatch)
    }

    @Test func patchOfAMissingObjectIsRejected() {
        #expect(code(decide(.patch, "{}")) == .unknownObject)
        #expect(code(decide(.patch, "{}", on: "tombstone")) == .deleted)
        #expect(code(decide(.put, "{}", on: "tombstone")) == .deleted)
        #expect(code(decide(.put, nil)) == .fieldsMismatch)
        #expect(code(decide(.patch, "{}", on: #"{"status":"archived"}"#)) == .unreadable)
    }
}

@Suite(.ownThreads) struct MutationSequenceTests {
    private func replayCount(_ sequences: [Int64], expected: Int64) -> Int? {
        MutationRequest.with(sequences).replayCount(expected: expected)
    }

    @Test func replayCountDetectsRepeatsAndGaps() {
        #expect(replayCount([3, 4], expected: 3) == 0)
        #expect(replayCount([1, 2, 3], expected: 3) == 2)
        #expect(replayCount([1, 2], expected: 9) == 2)
        #expect(replayCount([3, 3], expected: 3) == nil)
        #expect(replayCount([4], expected: 3) == nil)
        #expect(replayCount([3, 5], expected: 3) == nil)
        #expect(replayCount([1, 3], expected: 9) == nil)
        #expect(replayCount([0], expected: 3) == nil)
        #expect(replayCount([], expected: 3) == 0)
        #expect(replayCount([1], expected: .max) == 1)
    }
}

extension MutationRequest {
    /// Returns a request of malformed mutations with these sequences.
    static func with(_ sequences: [Int64]) -> MutationRequest {
        let integration = IntegrationStore.Integration(environment: EnvironmentID(rawValue: 1), id: 1, name: "books")
        return MutationRequest(
            caller: .integration(integration), address: "", clientID: UUID(), traceparent: nil,
            mutations: sequences.map {
                SubmittedMutation(sequence: $0, content: .failure(MutationProblem(.malformedMutation, "")))
            })
    }
}
