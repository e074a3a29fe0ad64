import Algorithms
import DeviceClient
import Essentials
import FoundationEssentials
import KindSchema
import Model

/// The accepted mutations of objects of own kinds, and an evaluation of the objects that follow from them.
struct OwnKindHistory: Sendable {
    private struct Write: Sendable {
        let position: Int64
        let person: UUID
        let operation: Mutation.Operation
        let values: [String: SchemaValue]
    }

    /// An object after some of its mutations.
    private struct Evaluation {
        /// The fields that are not null; `nil` without an object.
        var values: [String: SchemaValue]?
        var problems: [String] = []
    }

    private let kinds: RandomKinds
    private var writes: [ObjectAddress: [Write]] = [:]
    private var rejectedCounts: [String: Int] = [:]
    /// Rejections of what the declaration allows.
    private var unexpected: [String] = []

    /// Expected rejections: the device's state or version was outdated, or the person tries what is not permitted.
    private static let expectedCodes: Set = [
        "realm-not-permitted", "deleted", "unknown-object", "unknown-kind", "unknown-field", "kind-not-allowed",
        "operation-not-allowed", "field-not-allowed", "invalid-field",
    ]

    init(_ kinds: RandomKinds) { self.kinds = kinds }

    var summary: String {
        "own kinds: \(writes.values.reduce(0) { $0 + $1.count }) mutations accepted, refused: \(rejectedCounts)"
    }

    /// Takes the response to a mutation of an own kind.
    ///
    /// - Parameter isOwner: Whether it is in the person's own realm.
    mutating func take(_ response: AnsweredMutation, of person: UUID, isOwner: Bool) {
        let mutation = response.mutation
        guard let kind = kinds[mutation.kind] else { return }
        let values = Self.values(mutation.fields)
        switch response.outcome {
        case .accepted(let position):
            let object = ObjectAddress(response.realm, ObjectID(kind: mutation.kind, id: mutation.id))
            writes[object, default: []].append(
                Write(position: position, person: person, operation: mutation.operation, values: values))
        case .rejected(let code, let detail):
            rejectedCounts[code, default: 0] += 1
            let isAllowed = isOwner && Self.isAllowedToOwner(mutation.operation, values, kind, in: response.realm)
            guard isAllowed ? !["deleted", "unknown-object"].contains(code) : !Self.expectedCodes.contains(code) else {
                return
            }
            unexpected.append("a \(mutation.operation.rawValue) of \(mutation.kind.rawValue): \(code): \(detail)")
        case .expired, nil: break
        }
    }

    /// Excludes the mutations that were accepted at these positions.
    mutating func exclude(_ positions: Range<Int64>) {
        writes = writes.mapValues { $0.filter { !positions.contains($0.position) } }
    }

    private static func values(_ fields: [UInt8]?) -> [String: SchemaValue] {
        let members = fields.flatMap { try? SchemaValue($0) }?.members ?? []
        return Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
    }

    /// Whether the first version allows a mutation, whether the object exists or not.
    private static func isAllowedToOwner(
        _ operation: Mutation.Operation, _ values: [String: SchemaValue], _ kind: RandomKind, in realm: RealmPath
    ) -> Bool {
        guard kind.version == 1 else { return false }
        func isAllowed(_ act: RandomKind.Act, _ values: [String: SchemaValue]) -> Bool {
            kind.objection(to: act, values, in: realm, 1) { $0 == .owner } == nil
        }
        switch operation {
        case .put: return isAllowed(.create, values) && isAllowed(.change, values)
        // It could be a creation for the permissions, but not for the required fields.
        case .patch:
            let title = [RandomKind.required: SchemaValue.text("")]
            return isAllowed(.create, values.merging(title) { first, _ in first }) && isAllowed(.change, values)
        case .delete: return isAllowed(.delete, [:])
        }
    }

    private static func text(_ values: [String: SchemaValue]?) -> String {
        guard let values else { return "deleted" }
        return SchemaValue.object(values.sorted { $0.key < $1.key }.map { SchemaValue.Member($0.key, $0.value) }).json
    }

    // MARK: Comparison

    /// Returns the differences between the stored objects and the evaluation, and mutations that were accepted or
    /// rejected against the declaration.
    ///
    /// - Parameter mayBe: Whether a person ever belonged to the people of a permission in a realm.
    func differences(
        _ snapshot: EnvironmentSnapshot, mayBe: (RandomKind.Writer, UUID, RealmPath) -> Bool
    ) -> [String] {
        var (differences, images) = (unexpected, Set<UUID>())
        for (address, list) in writes {
            let expected = evaluate(list, at: address, mayBe)
            let stored = snapshot.realms[address.realm]?[address.object]
            let values = stored.map { Self.values($0.fields).filter { $0.value != .null } }
            let name = "\(address.realm) \(address.object)"
            differences += expected.problems.map { "\(name): \($0)" }
            if values != expected.values {
                differences.append("\(name) is \(Self.text(values)), not \(Self.text(expected.values))")
            }
            for field in kinds[address.object.kind]?.fields ?? [] {
                if let value = expected.values?[field.name] { images.formUnion(field.images(in: value)) }
            }
        }
        for (path, content) in snapshot.realms {
            for object in content.keys where kinds[object.kind] != nil && writes[ObjectAddress(path, object)] == nil {
                differences.append("\(path) \(object) was not written")
            }
        }
        if images != snapshot.images {
            let count = images.symmetricDifference(snapshot.images).count
            differences.append("the references to images differ from those of the objects: \(count)")
        }
        return differences.sorted()
    }

    /// Applies mutations in the order of their positions. A mutation without effect has the position of an earlier one,
    /// maybe of another person: any order without a problem is right.
    private func evaluate(
        _ list: [Write], at address: ObjectAddress, _ mayBe: (RandomKind.Writer, UUID, RealmPath) -> Bool
    ) -> Evaluation {
        var evaluation = Evaluation()
        for group in list.sorted(by: { $0.position < $1.position }).chunked(on: \.position) {
            let before = evaluation
            for people in Array(group.1.map(\.person).uniqued()).permutations().prefix(24) {
                evaluation = before
                for write in people.flatMap({ person in group.1.filter { $0.person == person } }) {
                    apply(write, at: address, mayBe, to: &evaluation)
                }
                if evaluation.problems.count == before.problems.count { break }
            }
        }
        return evaluation
    }

    private func apply(
        _ write: Write, at address: ObjectAddress, _ mayBe: (RandomKind.Writer, UUID, RealmPath) -> Bool,
        to evaluation: inout Evaluation
    ) {
        guard let kind = kinds[address.object.kind] else { return }
        let act: RandomKind.Act =
            write.operation == .delete ? .delete : evaluation.values == nil ? .create : .change
        let objection = kind.objection(to: act, write.values, in: address.realm, RandomKinds.versionCount) { writer in
            mayBe(writer, write.person, address.realm)
        }
        if let objection { evaluation.problems.append("accepted at \(write.position), but \(objection)") }
        switch write.operation {
        case .delete: evaluation.values = nil
        case .put:
            let replaced = kind.rules(in: address.realm)?.changeable ?? []
            let kept = evaluation.values?.filter { !replaced.contains($0.key) } ?? [:]
            evaluation.values = kept.merging(write.values) { $1 }
        case .patch:
            if evaluation.values == nil { evaluation.problems.append("patched at \(write.position), but missing") }
            evaluation.values = evaluation.values?.merging(write.values) { $1 }
        }
        evaluation.values = evaluation.values?.filter { $0.value != .null }
    }
}
