import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

/// The details of defects on a device.
@Suite(.ownThreads) struct DefectDetailsTests {
    private typealias Held = HeldContents

    private var contents: [RealmPath: RealmContent] = [:]
    private let own: RealmPath

    init() throws { own = try RealmPath.user("ana@example.com") }

    private func detail(_ minute: Int64) -> DefectDetail { DefectDetail(readAt: Held.minute(minute)) }

    private mutating func add(_ number: UInt8, _ command: DefectCommand, readAt minute: Int64? = nil) throws {
        var command = command
        command.submitRequested = true
        command.detail = minute.map { detail($0) }
        if minute != nil, command.status == .waiting { command.status = .done }
        try contents.put(.defectCommand, Held.id(number), command, in: own)
    }

    private var details: DefectDetails { DefectDetails(realm: own, in: contents) }

    @Test mutating func newestDetailOfEachRequestIsDisplayed() throws {
        let read = DefectCommand(operation: .read, record: "R1")
        let form = DefectCommand(operation: .form, record: "R1", actionName: "Open")
        for (number, minute) in [(20, -3), (21, -1), (22, -2)] as [(UInt8, Int64)] {
            try add(number, read, readAt: minute)
        }
        try add(23, form, readAt: -5)
        try add(24, DefectCommand(operation: .form, record: "R1"), readAt: -9)
        try add(25, DefectCommand(operation: .runQuery, query: "7"), readAt: -8)
        try add(26, DefectCommand(operation: .runQuery, query: "7", fromRow: 0), readAt: -7)
        try add(27, DefectCommand(operation: .runQuery, query: "7", fromRow: 50), readAt: -6)
        #expect(details.details.count == 5)
        #expect(details.details[.init(record: "R1")] == detail(-1))
        #expect(details.details[.init(form)] == detail(-5))
        #expect(details.details[.init(DefectCommand(operation: .runQuery, query: "7"))] == detail(-7))
        #expect(details.superseded == [Held.id(20), Held.id(22), Held.id(25)] && details.pending.isEmpty)
    }

    /// The last detail stays while another command is queued offline, and after one is refused.
    @Test mutating func lastDetailStaysWhileAnotherReadIsPending() throws {
        let read = DefectCommand(operation: .read, record: "R1")
        try add(20, read, readAt: -3)
        try add(21, DefectCommand(operation: .read, record: "R1", status: .refused, messages: ["m"]))
        try add(22, read)
        try add(23, DefectCommand(operation: .queries))
        try add(24, DefectCommand(operation: .modify, record: "R2", fields: ["Headline": "h"]))
        #expect(details.details == [.init(record: "R1"): detail(-3)])
        #expect(details.pending == [.init(read), .init(DefectCommand(operation: .queries))])
        #expect(details.superseded.isEmpty)
    }

    /// A conflict includes the record, and is not deleted with the superseded reads.
    @Test(arguments: [-2, 2] as [Int64]) mutating func conflictIncludesTheRecord(minute: Int64) throws {
        let modify = DefectCommand(
            operation: .modify, record: "R1", fields: ["Headline": "h"], status: .conflict, messages: ["m"])
        try add(20, DefectCommand(operation: .read, record: "R1"), readAt: 0)
        try add(21, modify, readAt: minute)
        #expect(details.details == [.init(record: "R1"): detail(max(minute, 0))])
        let replaced: Set<UUID> = minute > 0 ? [Held.id(20)] : []
        #expect(details.superseded == replaced)
    }

    /// Drafts, other kinds, other realms and unreadable objects are ignored.
    @Test mutating func otherObjectsAreIgnored() throws {
        var draft = DefectCommand(operation: .read, record: "R1", status: .done)
        draft.detail = detail(0)
        try contents.put(.defectCommand, Held.id(20), draft, in: own)
        contents.hold(.defectCommand, Held.id(21), Array(#"{"operation": "explode"}"#.utf8), in: own)
        contents.hold(.defectCommand, Held.id(22), Array("7".utf8), in: own)
        draft.submitRequested = true
        try contents.put(.note, Held.id(23), draft, in: own)
        try contents.put(.defectCommand, Held.id(24), draft, in: .common)
        #expect(details.details.isEmpty && details.pending.isEmpty && details.superseded.isEmpty)
        #expect(DefectDetails(realm: own, in: [:]) == details)
    }
}
