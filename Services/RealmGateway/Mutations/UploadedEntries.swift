import Access
import Essentials
import FoundationEssentials
import HTTPServer
import Model
import ObjectStore

extension MutationRequest {
    /// Parses a body of `POST /v1/uploads`: entries of the queue of a client of the PowerSync protocol.
    ///
    /// An error inside an entry rejects only that entry, if its number is readable.
    /// - Throws: `Problem` 400 if the body itself is malformed.
    init(
        uploads body: [UInt8], by login: Login, traceparent: TraceContext?, countMax: Int, catalogue: KindCatalogue
    ) throws(Problem) {
        let (clientID, elements) = try Self.parts(of: body, list: "entries", countMax: countMax)
        var mutations: [SubmittedMutation] = []
        for element in elements {
            let entry = try SubmittedMutation(entry: Array(body[element]), catalogue)
            if let last = mutations.last, entry.sequence <= last.sequence {
                throw Problems.malformed("'op_id' must increase: \(entry.sequence) follows \(last.sequence).")
            }
            mutations.append(entry)
        }
        self.init(
            caller: login.caller, laterEmail: login.laterEmail, address: login.address, clientID: clientID,
            traceparent: traceparent, mutations: mutations, kindsVersion: catalogue.version, allowsGaps: true)
    }
}

extension SubmittedMutation {
    /// Length of the object's id at the start of a row's id.
    private static let idLength = 36
    /// The largest number that JavaScript represents exactly.
    private static let sequenceMax: Int64 = (1 << 53) - 1

    fileprivate init(entry bytes: [UInt8], _ catalogue: KindCatalogue) throws(Problem) {
        let members = JSONOutline.members(of: bytes, in: 0..<bytes.count, countMax: 32) ?? []
        let sequence = members.first { $0.key.elementsEqual("op_id".utf8) }
            .flatMap { JSONNumber.whole(bytes[$0.value], as: Int64.self) }
        guard let sequence, (1...Self.sequenceMax).contains(sequence) else {
            throw Problems.malformed(
                "Each entry must be an object whose 'op_id' is a whole number from 1 to \(Self.sequenceMax).")
        }
        self.init(
            sequence: sequence,
            content: Result { () throws(MutationProblem) in try Self.mutation(entry: bytes, catalogue) })
    }

    private static func mutation(
        entry bytes: [UInt8], _ catalogue: KindCatalogue
    ) throws(MutationProblem) -> RealmMutation {
        let entry: JSONObject
        do { entry = try JSONObject(bytes) } catch { throw MutationProblem(.invalidJSON, "the entry: \(error)") }
        let operation: Mutation.Operation
        switch entry.text(of: "op") {
        case "PUT": operation = .put
        case "PATCH": operation = .patch
        case "DELETE": operation = .delete
        default: throw MutationProblem(.malformedMutation, "'op' must be PUT, PATCH or DELETE")
        }
        let name = entry.text(of: "type")
        guard let kind = name.flatMap(catalogue.kind(named:)) else {
            throw MutationProblem(.unknownKind, "there is no kind '\(name?.excerpt ?? "")'")
        }
        let row = entry.text(of: "id") ?? ""
        guard let id = UUID(ascii: String(row.prefix(idLength))), let realm = RealmPath(String(row.dropFirst(idLength)))
        else {
            throw MutationProblem(
                .malformedMutation, "'id' must be a UUID and a realm's path, such as …/users/ana@example.com")
        }
        var fields: [UInt8]?
        if operation != .delete {
            do throws(JSONError) {
                let data = entry.value(of: "data").flatMap { $0.elementsEqual("null".utf8) ? nil : Array($0) }
                fields = kind.fields(ofColumns: try JSONObject(data ?? Array("{}".utf8)))
            } catch { throw MutationProblem(.invalidJSON, "'data': \(error)") }
        }
        return RealmMutation(
            realm: realm,
            mutation: Mutation(
                operation: operation, kind: kind, id: id, fields: fields, position: nil, restores: false))
    }
}

extension Kind {
    /// Converts SQLite's columns to fields: 0 and 1 to booleans, JSON text to lists and objects. Other values are
    /// unchanged, and rejected later if they are invalid.
    fileprivate func fields(ofColumns columns: JSONObject) -> [UInt8] {
        columns.mapValues { converted(columns.bytes[$0.value], form(of: $0.key)) }
    }

    private func converted(_ value: ArraySlice<UInt8>, _ form: FieldForm) -> ArraySlice<UInt8> {
        switch form {
        case .boolean where value.elementsEqual("0".utf8): Array("false".utf8)[...]
        case .boolean where value.elementsEqual("1".utf8): Array("true".utf8)[...]
        case .structure:
            if let text = JSONObject.text(value).map({ Array($0.utf8) }), (try? JSONCheck.check(text)) != nil {
                text[...]
            } else {
                value
            }
        default: value
        }
    }
}
