import DeviceClient
import Essentials
import Foundation
import KindSchema
import Model
import TestSupport
import Testing

@testable import Workbench

/// The random kinds of `converge`, and the evaluation of what devices write to their objects.
@Suite(.ownThreads) struct RandomKindTests {
    @Test func versionsAreValidAndAdditive() throws {
        var realms: Set<RandomKind.Realm> = []
        for seed in 1...200 as ClosedRange<UInt64> {
            let kinds = RandomKinds(seed: seed)
            let files = try (1...RandomKinds.versionCount).map { version in
                try EnvironmentKinds(try SchemaValue(Array(kinds.file(version).utf8)))
            }
            let changes = files[0].changes(to: files[1])
            #expect(!changes.isEmpty && changes.allSatisfy { $0.effect == .additive }, "\(seed): \(changes)")
            #expect(kinds.file(1) == RandomKinds(seed: seed).file(1))
            realms.formUnion(kinds.list.flatMap(\.rules.keys))
        }
        #expect(realms == Set(RandomKind.Realm.allCases))
    }

    /// A kind whose owner may create all fields, and change and delete.
    private static let kinds = (1...1_000 as ClosedRange<UInt64>).lazy.map(RandomKinds.init)
        .first { $0.list[0].rules[.user]?.writers.count == 3 && $0.list[0].rules[.user]?.changeable == ["title"] }
    private static let id = UUID()
    private static let realm = RealmPath("/users/ana@example.com") ?? .common

    private let kind: Kind
    private var history: OwnKindHistory
    private var snapshot = EnvironmentSnapshot()

    init() throws {
        let kinds = try #require(Self.kinds)
        kind = kinds.list[0].kind
        history = OwnKindHistory(kinds)
        take(.put(kind, Self.id, #"{"title":"Roof"}"#), .accepted(position: 1))
        take(.patch(kind, Self.id, #"{"title":"Gate"}"#), .accepted(position: 2))
        store(#"{"title":"Gate"}"#)
    }

    private mutating func take(_ mutation: Mutation, _ outcome: MutationOutcome) {
        history.take(
            AnsweredMutation(realm: Self.realm, mutation: mutation, outcome: outcome), of: UUID(), isOwner: true)
    }

    private mutating func store(_ fields: String?) {
        snapshot.realms[Self.realm] = [:]
        guard let fields else { return }
        snapshot.realms[Self.realm]?[ObjectID(kind: kind, id: Self.id)] = DeviceObject(
            position: 2, fields: Array(fields.utf8))
    }

    private func differences(isOwner: Bool = true) -> [String] {
        history.differences(snapshot) { writer, _, _ in writer == .owner && isOwner }
    }

    /// A failover lost position 2, and no device had the mutation any more.
    @Test func onlyLostPositionsAreExcluded() {
        var other = self
        other.store(#"{"title":"Roof"}"#)
        #expect(!other.differences().isEmpty)
        other.history.exclude(2..<10)
        #expect(other.differences() == [])
        other.store(nil)
        #expect(!other.differences().isEmpty)
    }

    @Test func lostAndUnknownObjectsAreReported() {
        #expect(differences() == [])
        for fields in [#"{"title":"Roof"}"#, nil] {
            var other = self
            other.store(fields)
            #expect(other.differences().count == 1)
        }
        var other = self
        other.snapshot.realms[.common] = [ObjectID(kind: kind, id: UUID()): DeviceObject(position: 3, fields: [])]
        #expect(other.differences().count == 1)
        other = self
        other.snapshot.images = [UUID()]
        #expect(other.differences().count == 1)
    }

    @Test func resultsAgainstTheDeclarationAreReported() {
        #expect(differences(isOwner: false).count == 2)
        var other = self
        other.take(.patch(kind, Self.id, #"{"omega":1}"#), .accepted(position: 3))
        #expect(other.differences().contains { $0.contains("accepted at 3, but it writes omega") })
        for (outcome, count) in [("unknown-object", 0), ("operation-not-allowed", 1), ("busy", 1)] {
            other = self
            other.take(.delete(kind, Self.id), .rejected(code: outcome, detail: ""))
            #expect(other.differences().count == count, "\(outcome)")
        }
    }

    /// A mutation without effect has the position of another person's.
    @Test func mutationsWithoutEffectMayComeFirst() {
        var other = OwnKindHistory(Self.kinds ?? RandomKinds(seed: 1))
        let fields = #"{"title":"Gate"}"#
        for mutation in [Mutation.patch(kind, Self.id, fields), .put(kind, Self.id, fields)] {
            other.take(
                AnsweredMutation(realm: Self.realm, mutation: mutation, outcome: .accepted(position: 1)), of: UUID(),
                isOwner: true)
        }
        #expect(other.differences(snapshot) { writer, _, _ in writer == .owner } == [])
    }
}
