import Essentials
import FoundationEssentials
import Model
import Postgres

/// A desired record with its JSON in the ledger. It is encoded once, and written with the attempt and with its result.
struct EncodedRecord: Equatable, Sendable {
    let desired: DesiredRecord
    let json: JSONBytes

    /// - Parameter fields: The JSON that `desired.fields` was decoded from.
    init(_ desired: DesiredRecord, fields: CanonicalJSON) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.bytes.count + 256)
        bytes += "{\"day\":\"\(desired.day)\",\"durationSeconds\":\(desired.durationSeconds),".utf8
        if let text = desired.text {
            bytes += "\"text\":".utf8
            JSONText.append(text, to: &bytes)
            bytes.append(UInt8(ascii: ","))
        }
        bytes += "\"references\":{".utf8
        for (index, (name, reference)) in desired.references.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONText.append(name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            JSONText.append(reference, to: &bytes)
        }
        bytes += "},\"fields\":".utf8
        bytes += fields.bytes
        bytes.append(UInt8(ascii: "}"))
        self.desired = desired
        json = JSONBytes(bytes)
    }

    /// Returns the JSON of `Confirmed` without alterations.
    func confirmed(_ status: EntryStatus) -> JSONBytes {
        JSONBytes(Array("{\"wanted\":".utf8) + json.bytes + Array(",\"status\":\"\(status.rawValue)\"}".utf8))
    }
}

/// The desired record of an attempt, which is passed with the call and returned with its result. If the ledger row is
/// still that of the attempt, the record need not be read from there.
struct SentAttempt: Equatable, Sendable {
    let realm: Int32
    let version: Int64
    /// The edit of the attempt. With the version it identifies the attempt, also if the entry was deleted and created
    /// again with the same id.
    let editPosition: Int64
    let encoded: EncodedRecord

    /// - Returns: `nil` if the decision has no desired record, or its JSON is not available.
    init?(_ decision: SubmissionDecision, _ encoded: EncodedRecord?, realm: Int32) {
        guard let encoded, let ledger = decision.ledger, ledger.desired == encoded.desired else { return nil }
        (self.realm, self.encoded) = (realm, encoded)
        (version, editPosition) = (ledger.version, ledger.editPosition)
    }
}
