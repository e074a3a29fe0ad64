import Access
import Essentials
import FoundationEssentials
import HTTPServer
import Model
import ObjectStore

/// A parsed body of `POST /v1/mutations`.
struct MutationRequest: Sendable {
    let caller: Caller
    /// The person's current address, if it differs from that of their first login.
    let laterEmail: String?
    /// The client's network address, for the audit log.
    let address: String
    let clientID: UUID
    /// The request's W3C trace context, for the events of its changes.
    let traceparent: TraceContext?
    /// In ascending order of sequence; ``replayCount(expected:)`` detects gaps.
    let mutations: [SubmittedMutation]
    /// Whether sequences may be missing: the queue of a client of the PowerSync protocol counts on when it is emptied.
    let allowsGaps: Bool
    /// The version of the environment's kinds by which the mutations were parsed; `nil` if they name only built-in
    /// kinds.
    let kindsVersion: Int32?
    /// The realms that the mutations name.
    let realms: Set<RealmPath>

    init(
        caller: Caller, laterEmail: String? = nil, address: String, clientID: UUID, traceparent: TraceContext?,
        mutations: [SubmittedMutation], kindsVersion: Int32? = nil, allowsGaps: Bool = false
    ) {
        self.kindsVersion = mutations.contains(where: \.dependsOnCatalogue) ? kindsVersion : nil
        self.caller = caller
        self.laterEmail = laterEmail
        self.address = address
        self.clientID = clientID
        self.traceparent = traceparent
        self.mutations = mutations
        self.allowsGaps = allowsGaps
        realms = Set(mutations.compactMap { $0.write?.realm })
    }

    var client: ClientKey { ClientKey(caller: caller.id, client: clientID) }

    /// Whether permissions other than for the caller's own realm are needed.
    var writesOtherRealms: Bool { realms.contains { $0 != caller.own } }

    /// Whether the decisions depend on objects of `/common`: the caller's permissions, or the targets of references.
    var readsCommon: Bool {
        caller.object != nil && writesOtherRealms
            || writes.contains { $0.mutation.hasRequiredReferences }
    }

    /// Whether it writes only the caller's own objects in `/common`, on which no permissions depend.
    var writesOnlyOwnInCommon: Bool {
        writes.filter { $0.realm == .common }.allSatisfy { write in
            write.mutation.id == caller.object && [.person, .personLookup].contains(write.mutation.kind)
        }
    }

    /// The well-formed mutations.
    var writes: [RealmMutation] { mutations.compactMap(\.write) }

    /// Returns the number of mutations, all at the start, that were processed before.
    ///
    /// - Parameter expected: The client's next sequence.
    /// - Returns: `nil` if a sequence is missing, before the first one or between two, even of processed ones.
    func replayCount(expected: Int64) -> Int? {
        if allowsGaps { return mutations.prefix { $0.sequence < expected }.count }
        guard let first = mutations.first?.sequence, let last = mutations.last?.sequence else { return 0 }
        guard first >= 1, first <= expected, last - first == mutations.count - 1 else { return nil }
        return min(Int(expected - first), mutations.count)
    }
}

/// A mutation and the realm of its object; its permission is not checked yet.
struct RealmMutation: Sendable {
    let realm: RealmPath
    let mutation: Mutation
}

/// One mutation of a request.
struct SubmittedMutation: Sendable {
    let sequence: Int64
    /// The parsed mutation; a malformed one is rejected without reading the object.
    let content: Result<RealmMutation, MutationProblem>

    /// `nil` if the mutation is malformed.
    var write: RealmMutation? { try? content.get() }

    /// Whether it names a kind that is not built-in.
    fileprivate var dependsOnCatalogue: Bool {
        switch content {
        case .success(let write): if case .own = write.mutation.kind { true } else { false }
        case .failure(let problem): problem.code == .unknownKind
        }
    }
}

extension Mutation {
    /// The objects that must exist for this put to be accepted.
    var requiredReferences: [OwnerRules.RequiredReference] {
        guard hasRequiredReferences, let object = fields.flatMap({ try? JSONObject($0) }) else { return [] }
        return OwnerRules.requiredReferences(of: kind, id, object)
    }

    var hasRequiredReferences: Bool { operation == .put && OwnerRules.hasRequiredReferences(kind) }
}

extension MutationRequest {
    /// Parses a body.
    ///
    /// An error inside a mutation, such as invalid JSON, rejects only that mutation, if its sequence is readable.
    /// - Throws: `Problem` 400 if the body itself is malformed.
    init(
        _ body: [UInt8], by login: Login, traceparent: TraceContext?, countMax: Int, catalogue: KindCatalogue
    ) throws(Problem) {
        let (clientID, elements) = try Self.parts(of: body, list: "mutations", countMax: countMax)
        var mutations: [SubmittedMutation] = []
        for element in elements {
            let mutation = try SubmittedMutation(Array(body[element]), catalogue)
            if let last = mutations.last, mutation.sequence <= last.sequence {
                throw Problems.malformed("Sequences must increase by 1: \(mutation.sequence) follows \(last.sequence).")
            }
            mutations.append(mutation)
        }
        self.init(
            caller: login.caller, laterEmail: login.laterEmail, address: login.address, clientID: clientID,
            traceparent: traceparent, mutations: mutations, kindsVersion: catalogue.version)
    }

    /// Splits a body into its client's id and the elements of its list.
    static func parts(
        of body: [UInt8], list: String, countMax: Int
    ) throws(Problem) -> (clientID: UUID, elements: [Range<Int>]) {
        guard let members = JSONOutline.members(of: body, in: 0..<body.count, countMax: 8) else {
            throw Problems.malformed("The body is not a JSON object with clientId and \(list).")
        }
        var clientID: UUID?
        var elements: [Range<Int>]?
        for member in members {
            switch String(decoding: member.key, as: UTF8.self) {
            case "clientId" where clientID == nil: clientID = UUID(ascii: unquoted(body[member.value]) ?? "")
            case list where elements == nil:
                elements = JSONOutline.elements(of: body, in: member.value, countMax: countMax)
            case let key: throw Problems.malformed("'\(key.excerpt)' is not allowed here, or repeated.")
            }
        }
        guard let clientID else { throw Problems.malformed("'clientId' must be a UUID.") }
        guard let elements else {
            throw Problems.malformed("'\(list)' must be an array of at most \(countMax) objects.")
        }
        return (clientID, elements)
    }
}

extension SubmittedMutation {
    fileprivate init(_ bytes: [UInt8], _ catalogue: KindCatalogue) throws(Problem) {
        let members = JSONOutline.members(of: bytes, in: 0..<bytes.count, countMax: 32) ?? []
        let sequence = members.first { $0.key.elementsEqual("sequence".utf8) }
            .flatMap { JSONNumber.whole(bytes[$0.value], as: Int64.self) }
        guard let sequence, sequence >= 1 else {
            throw Problems.malformed("Each mutation must be an object whose 'sequence' is a whole number from 1.")
        }
        self.sequence = sequence
        content = Result { () throws(MutationProblem) in try Self.mutation(bytes, catalogue) }
    }

    private static func mutation(
        _ bytes: [UInt8], _ catalogue: KindCatalogue
    ) throws(MutationProblem) -> RealmMutation {
        let object: JSONObject
        do { object = try JSONObject(bytes) } catch { throw MutationProblem(.invalidJSON, "the mutation: \(error)") }
        let allowed = ["sequence", "realm", "op", "kind", "id", "fields", "position", "restore"]
        if let unknown = object.members.first(where: { !allowed.contains($0.key) }) {
            throw MutationProblem(.malformedMutation, "'\(unknown.key.excerpt)' is not a member of a mutation")
        }
        guard let operation = object.text(of: "op").flatMap(Mutation.Operation.init(rawValue:)) else {
            throw MutationProblem(.malformedMutation, "'op' must be put, patch or delete")
        }
        guard let id = object.id(of: "id") else {
            throw MutationProblem(.malformedMutation, "'id' must be a UUID")
        }
        guard let realm = object.text(of: "realm").flatMap({ RealmPath($0) }) else {
            throw MutationProblem(.malformedMutation, "'realm' must be a realm's path")
        }
        let name = object.text(of: "kind")
        guard let kind = name.flatMap(catalogue.kind(named:)) else {
            throw MutationProblem(.unknownKind, "there is no kind '\(name?.excerpt ?? "")'")
        }
        let position = object.value(of: "position").map { JSONNumber.whole($0, as: Int64.self) ?? -1 }
        if let position, position < 0 {
            throw MutationProblem(.malformedMutation, "'position' must be a whole number from 0")
        }
        let fields = object.value(of: "fields").map { Array($0) }
        let restores = try restores(object, operation, kind)
        return RealmMutation(
            realm: realm,
            mutation: Mutation(
                operation: operation, kind: kind, id: id, fields: fields, position: position, restores: restores))
    }

    private static func restores(
        _ object: JSONObject, _ operation: Mutation.Operation, _ kind: Kind
    ) throws(MutationProblem) -> Bool {
        guard let value = object.value(of: "restore") else { return false }
        let isTrue = value.elementsEqual("true".utf8)
        guard isTrue || value.elementsEqual("false".utf8) else {
            throw MutationProblem(.malformedMutation, "'restore' must be true or false")
        }
        guard !isTrue || operation == .put && kind.isRestorable else {
            let kinds = Kind.allCases.filter(\.isRestorable).map(\.rawValue).joined(separator: ", ")
            throw MutationProblem(.malformedMutation, "'restore' is only for a put of one of: \(kinds)")
        }
        return isTrue
    }
}

/// Returns the content of a JSON string without escapes.
private func unquoted(_ value: ArraySlice<UInt8>) -> String? {
    guard value.count >= 2, value.first == UInt8(ascii: "\"") else { return nil }
    return String(decoding: value.dropFirst().dropLast(), as: UTF8.self)
}
