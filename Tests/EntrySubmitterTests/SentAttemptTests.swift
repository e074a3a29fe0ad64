import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import EntrySubmitter
@testable import ObjectStore

/// What goes with a call and comes back with its answer stands for the ledger's row that it was written to, and for no
/// other.
@Suite(.ownThreads) struct SentAttemptTests {
    private static let id = UUID()

    private static func wanted(_ text: String?) -> Wanted {
        let fields = TimeEntry(text: text, entryDate: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600)
        return Wanted(
            day: Day(daysSinceEpoch: 16_000), durationSeconds: 3_600, text: text,
            references: ["Cost \"centre\"": "A\\1", "Activity": "\u{2028}7"], fields: fields)
    }

    private static func encoded(_ text: String?) throws -> EncodedWanted {
        let wanted = wanted(text)
        // Fields that this program does not know, as a device may have written them.
        let json = String(decoding: try JSONEncoder().encode(wanted.fields), as: UTF8.self)
        return EncodedWanted(wanted, fields: try CanonicalJSON("{ \"later\": [1], " + json.dropFirst()))
    }

    @Test(arguments: ["survey", nil, "", "\"quoted\" \\ \n\t\u{1}\u{7F}\u{2028} 🌍"])
    func itsJSONIsThatOfTheValue(text: String?) throws {
        let encoded = try Self.encoded(text)
        let decoder = JSONDecoder()
        #expect(try decoder.decode(Wanted.self, from: Data(encoded.json.bytes)) == Self.wanted(text))
        for status in EntryStatus.allCases {
            #expect(
                try decoder.decode(Confirmed.self, from: Data(encoded.confirmed(status).bytes))
                    == Confirmed(wanted: Self.wanted(text), status: status))
        }
    }

    /// - Parameter difference: What the row has otherwise than the attempt.
    @Test(arguments: ["nothing", "realm", "version", "edit"]) func itStandsForItsOwnRowAlone(difference: String) throws
    {
        var acme = try TestEnvironment()
        let realm = try acme.realm(.user("ana@example.com"))
        var sent = Ledger()
        (sent.version, sent.editPosition) = (difference == "version" ? 4 : 3, difference == "edit" ? 8 : 7)
        sent.wanted = Self.wanted("sent")
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
        #expect(ledger.wanted?.text == (difference == "nothing" ? "sent" : "stored"))
        #expect(ledger.version == 3 && ledger.editPosition == 7)
    }

    @Test func itIsOfWhatTheLedgerWants() throws {
        var ledger = Ledger()
        ledger.wanted = Self.wanted("one")
        let decision = SubmissionDecision(ledger: ledger, step: .finished)
        #expect(SentAttempt(decision, try Self.encoded("one"), realm: 1) != nil)
        #expect(SentAttempt(decision, try Self.encoded("other"), realm: 1) == nil)
        #expect(SentAttempt(SubmissionDecision(step: .finished), try Self.encoded("one"), realm: 1) == nil)
    }
}
