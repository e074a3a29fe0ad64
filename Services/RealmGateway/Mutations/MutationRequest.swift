import Access
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Identity
import Model

/// A body of `POST /v1/mutations`, split but not decided.
struct MutationRequest: Sendable {
    let caller: Caller
    /// The person's address by now, where that is another than at their first login.
    let laterEmail: String?
    /// Where the request comes from, for the audit log.
    let address: String
    let clientID: UUID
    /// The request's W3C trace context, for the events of what it changes.
    let traceparent: TraceContext?
    /// Their sequences go up; whether one is missing is decided by ``MutationQueue``.
    let mutations: [SubmittedMutation]
    /// The realms it wants to write to.
    let realms: Set<RealmPath>

    init(
        caller: Caller, laterEmail: String? = nil, address: String, clientID: UUID, traceparent: TraceContext?,
        mutations: [SubmittedMutation]
    ) {
        self.caller = caller
        self.laterEmail = laterEmail
        self.address = address
        self.clientID = clientID
        self.traceparent = traceparent
        self.mutations = mutations
        realms = Set(mutations.compactMap { if case .change(let realm, _) = $0.intent { realm } else { nil } })
    }

    /// Whether it is decided from more than whose it is.
    var isBeyondOwn: Bool { realms.contains { $0 != caller.own } }

    /// Whether it is decided from objects of `/common`: the caller's permission, or the targets of references.
    var readsCommon: Bool {
        caller.object != nil && isBeyondOwn
            || mutations.contains { mutation in
                if case .change(_, let change) = mutation.intent { change.hasRequiredReferences } else { false }
            }
    }

    /// Whether what it writes in `/common` is only what people tell of themselves: nobody's permission depends on it.
    var isOwnInCommon: Bool {
        mutations.allSatisfy { mutation in
            guard case .change(.common, let change) = mutation.intent else { return true }
            return change.id == caller.object && [.person, .personLookup].contains(change.kind)
        }
    }
}

/// One mutation of a request.
struct SubmittedMutation: Sendable {
    enum Intent: Sendable {
        /// A change of an object of a realm, not yet known to be permitted.
        case change(RealmPath, Mutation)
        /// It can be seen without a look at the object that it will not be done.
        case refused(Rejection)
    }

    let sequence: Int64
    let intent: Intent
}

extension Mutation {
    /// The objects of `/common` that must exist for this put to be accepted.
    var requiredReferences: [OwnerRules.RequiredReference] {
        guard hasRequiredReferences, let object = fields.flatMap({ try? JSONObject($0) }) else { return [] }
        return OwnerRules.requiredReferences(of: kind, id, object)
    }

    var hasRequiredReferences: Bool { operation == .put && OwnerRules.hasRequiredReferences(kind) }
}

/// Why a mutation was rejected: what the device gets, and what is kept for a repeat.
struct Rejection: Error, Sendable, Equatable {
    /// RFC 9457 problem as JSON.
    let problem: [UInt8]

    init(problem: [UInt8]) { self.problem = problem }

    init(_ name: String, _ detail: String) {
        problem = Problem(.unprocessableContent, name: name, title: "Mutation rejected", detail: detail).json
    }

    init(_ problem: MutationProblem) { self.init(problem.code.rawValue, problem.detail) }
}

extension MutationRequest {
    /// Splits a body.
    ///
    /// What is wrong inside one mutation rejects only that one; it needs a readable sequence for that.
    /// - Throws: `Problem` 400 when the body as a whole cannot be understood.
    init(
        _ body: [UInt8], by login: Login, traceparent: TraceContext?, countMax: Int
    ) throws(Problem) {
        guard let members = JSONOutline.members(of: body, in: 0..<body.count, countMax: 8) else {
            throw Problems.malformed("The body is not a JSON object with clientId and mutations.")
        }
        var clientID: UUID?
        var elements: [Range<Int>]?
        for member in members {
            switch String(decoding: member.key, as: UTF8.self) {
            case "clientId" where clientID == nil: clientID = UUID(ascii: unquoted(body[member.value]) ?? "")
            case "mutations" where elements == nil:
                elements = JSONOutline.elements(of: body, in: member.value, countMax: countMax)
            case let key: throw Problems.malformed("'\(key.excerpt)' is not expected here, or given twice.")
            }
        }
        guard let clientID else { throw Problems.malformed("'clientId' must be a UUID.") }
        guard let elements else {
            throw Problems.malformed("'mutations' must be an array of at most \(countMax) objects.")
        }
        var mutations: [SubmittedMutation] = []
        for element in elements {
            let mutation = try SubmittedMutation(Array(body[element]))
            if let last = mutations.last, mutation.sequence <= last.sequence {
                throw Problems.malformed("Sequences must go up by 1: \(mutation.sequence) follows \(last.sequence).")
            }
            mutations.append(mutation)
        }
        self.init(
            caller: login.caller, laterEmail: login.laterEmail, address: login.address, clientID: clientID,
            traceparent: traceparent, mutations: mutations)
    }
}

extension SubmittedMutation {
    fileprivate init(_ bytes: [UInt8]) throws(Problem) {
        let members = JSONOutline.members(of: bytes, in: 0..<bytes.count, countMax: 32) ?? []
        let sequence = members.first { $0.key.elementsEqual("sequence".utf8) }
            .flatMap { JSONNumber.whole(bytes[$0.value], as: Int64.self) }
        guard let sequence, sequence >= 1 else {
            throw Problems.malformed("Each mutation must be an object whose 'sequence' is a whole number from 1.")
        }
        self.sequence = sequence
        do throws(Rejection) {
            let (realm, mutation) = try Self.mutation(bytes)
            intent = .change(realm, mutation)
        } catch {
            intent = .refused(error)
        }
    }

    private static func mutation(_ bytes: [UInt8]) throws(Rejection) -> (RealmPath, Mutation) {
        let object: JSONObject
        do { object = try JSONObject(bytes) } catch { throw Rejection(.init(.invalidJSON, "the mutation: \(error)")) }
        let known = ["sequence", "realm", "op", "kind", "id", "fields", "position"]
        if let unknown = object.members.first(where: { !known.contains($0.key) }) {
            throw Rejection("malformed-mutation", "'\(unknown.key.excerpt)' is not expected in a mutation")
        }
        guard let operation = object.text(of: "op").flatMap(Mutation.Operation.init(rawValue:)) else {
            throw Rejection("malformed-mutation", "'op' must be put, patch or delete")
        }
        guard let id = object.id(of: "id") else {
            throw Rejection("malformed-mutation", "'id' must be a UUID")
        }
        guard let realm = object.text(of: "realm").flatMap({ RealmPath($0) }) else {
            throw Rejection("malformed-mutation", "'realm' must be a realm's path")
        }
        let name = object.text(of: "kind")
        guard let kind = name.flatMap(Kind.init(rawValue:)) else {
            throw Rejection("unknown-kind", "there is no kind '\(name?.excerpt ?? "")'")
        }
        let position = object.value(of: "position").map { JSONNumber.whole($0, as: Int64.self) ?? -1 }
        if let position, position < 0 {
            throw Rejection("malformed-mutation", "'position' must be a whole number from 0")
        }
        let fields = object.value(of: "fields").map { Array($0) }
        return (
            realm, Mutation(operation: operation, kind: kind, id: id, fields: fields, position: position)
        )
    }
}

/// The text of a JSON string without escapes.
private func unquoted(_ value: ArraySlice<UInt8>) -> String? {
    guard value.count >= 2, value.first == UInt8(ascii: "\"") else { return nil }
    return String(decoding: value.dropFirst().dropLast(), as: UTF8.self)
}
