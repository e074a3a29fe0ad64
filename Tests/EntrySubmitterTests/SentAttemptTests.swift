import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import ObjectStore

/// The attempt that is passed with a call and its result replaces the ledger row that it was written to, and no other.
@Suite(.ownThreads) struct SentAttemptTests {
    private static let id = UUID()

    private static func desired(_ text: String?) -> DesiredRecord {
        let fields = TimeEntry(text: text, entryDate: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600)
        return DesiredRecord(
            day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: text,
            references: ["Cost \"centre\"": "A\\1", "Activity": "\u{2028}7"], fields: fields)
    }

    private static func encoded(_ text: String?) throws -> EncodedRecord {
        let desired = desired(text)
        // Unknown fields, as written by another version of a device.
        let json = String(decoding: try JSONEncoder().encode(desired.fields), as: UTF8.self)
        return EncodedRecord(desired, fields: try CanonicalJSON("{ \"later\": [1], " + json.dropFirst()))
    }

    @Test(arguments: ["survey", nil, "", "\"quoted\" \\ \n\t\u{1}\u{7F}\u{2028} 🌍"])
    func encodedJSONEqualsValue(text: String?) throws {
        let encoded = try Self.encoded(text)
        let decoder = JSONDecoder()
        #expect(try decoder.decode(DesiredRecord.self, from: Data(encoded.json.bytes)) == Self.desired(text))
        for status in EntryStatus.allCases {
            #expect(
                try decoder.decode(Confirmed.self, from: Data(encoded.confirmed(status).bytes))
                    == Confirmed(desired: Self.desired(text), status: status))
        }
    }

    /// - Parameter difference: The property in which the row differs from the attempt.
    @Test(arguments: ["nothing", "realm", "version", "edit"]) func attemptReplacesOnlyItsOwnRow(difference: String)
        throws
    {
        var acme = try TestEnvironment()
        let realm = try acme.realm(.user("ana@example.com"))
        var sent = Ledger()
        (sent.version, sent.editPosition) = (difference == "version" ? 4 : 3, difference == "edit" ? 8 : 7)
        sent.desired = Self.desired("sent")
        let attempt = SentAttempt(
            SubmissionDecision(ledger: sent, step: .finished), try Self.encoded("sent"),
            realm: difference == "realm" ? realm + 1 : realm)
        let stored = try Self.encoded("stored")
        try acme.connection.run(
            """
            INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation, edit_position,
                lease_until, wanted, logged_at)
            VALUES (\(acme.id.rawValue), \(Self.id), \(realm), 3, 'open', 'create', 7, now(), \(stored.json), 1)
            """)
        let rows = try acme.connection.run(EntryStore.loadLedgers([Self.id], in: acme.id))
        let ledgers = try EntryStore.ledgers(rows, sent: [Self.id: try #require(attempt)])
        let ledger = try #require(try ledgers[Self.id]?.ledger.get())
        #expect(ledger.desired?.text == (difference == "nothing" ? "sent" : "stored"))
        #expect(ledger.version == 3 && ledger.editPosition == 7)
    }

    @Test func attemptRequiresDesiredRecordOfLedger() throws {
        var ledger = Ledger()
        ledger.desired = Self.desired("one")
        let decision = SubmissionDecision(ledger: ledger, step: .finished)
        #expect(SentAttempt(decision, try Self.encoded("one"), realm: 1) != nil)
        #expect(SentAttempt(decision, try Self.encoded("other"), realm: 1) == nil)
        #expect(SentAttempt(SubmissionDecision(step: .finished), try Self.encoded("one"), realm: 1) == nil)
    }
}
