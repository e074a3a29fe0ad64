import Essentials
import FoundationEssentials
import Model
import Postgres

/// What an entry is to be in the back end, with its JSON as the ledger keeps it: it is made once, and written with the
/// attempt and again with what came of it.
struct EncodedWanted: Equatable, Sendable {
    let wanted: Wanted
    let json: JSONBytes

    /// - Parameter fields: The JSON that `wanted.fields` were read from.
    init(_ wanted: Wanted, fields: CanonicalJSON) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.bytes.count + 256)
        bytes += "{\"day\":\"\(wanted.day)\",\"durationSeconds\":\(wanted.durationSeconds),".utf8
        if let text = wanted.text {
            bytes += "\"text\":".utf8
            JSONText.append(text, to: &bytes)
            bytes.append(UInt8(ascii: ","))
        }
        bytes += "\"references\":{".utf8
        for (index, (name, reference)) in wanted.references.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONText.append(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            JSONText.append(reference, to: &bytes)
        }
        bytes += "},\"fields\":".utf8
        bytes += fields.bytes
        bytes.append(UInt8(ascii: "}"))
        self.wanted = wanted
        json = JSONBytes(bytes)
    }

    /// The same with what the back end is known to have made of it.
    func confirmed(_ status: EntryStatus) -> JSONBytes {
        JSONBytes(Array("{\"wanted\":".utf8) + json.bytes + Array(",\"status\":\"\(status.rawValue)\"}".utf8))
    }
}

/// What an attempt was opened with. It goes with the call and comes back with the answer: where the ledger's row is
/// still that of the attempt, it need not be read from there.
struct SentAttempt: Equatable, Sendable {
    let realm: Int32
    let version: Int64
    /// The edit that it is for: with the version it tells one attempt from all others of the id, also of an entry that
    /// was deleted and made anew.
    let editPosition: Int64
    let encoded: EncodedWanted

    /// - Returns: `nil` when the decision writes nothing to the back end, or it is not known how that is written.
    init?(_ decision: SubmissionDecision, _ encoded: EncodedWanted?, realm: Int32) {
        guard let encoded, let ledger = decision.ledger, ledger.wanted == encoded.wanted else { return nil }
        (self.realm, self.encoded) = (realm, encoded)
        (version, editPosition) = (ledger.version, ledger.editPosition)
    }
}
