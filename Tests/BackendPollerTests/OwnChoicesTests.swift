import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Choices that an integration or a person added to a person's realm.
@Suite(.ownThreads) struct OwnChoicesTests {
    private typealias World = PollHandlerTests

    @Test func pollerDeletesOnlyItsOwnChoices() throws {
        var acme = try World.environment()
        let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)
        let own: RealmPath = try #require(RealmPath("/users/ana@example.com"))
        try World.nextRun(&acme, 1)
        let first = World.data(["P1"], below: "Project")
        try World.poll(.data(first, [], days), &acme)

        // An integration adds a template with a choice of its own.
        let (template, context, node) = (UUID(), UUID(), UUID())
        let realm = try acme.realm(own)
        var batch = WriteBatch(environment: acme.id)
        for (kind, id, json) in [
            (Kind.reportingTreeNode, node, #"{"name": "Car", "referenceId": "C"}"#),
            (.reportingContext, context, #"{"name": "Vehicle", "sections": [{"name": "All", "items": []}]}"#),
            (
                .reportingTemplate, template,
                #"{"name": "Trip", "type": "trip", "reportingContexts": ["\#(context.text)"]}"#
            ),
        ] {
            batch.put(ObjectKey(realm: realm, kind: kind, id: id), try CanonicalJSON(json), decision: 0, isEdit: true)
        }
        let user = ObjectKey(realm: realm, kind: .user, id: RealmContents.userID(of: "ana@example.com"))
        let all = (first.templates.map(\.id) + [template]).map { "\"\($0.text)\"" }.joined(separator: ",")
        let stored = try RealmObject.stored(user, in: acme.id, on: &acme.connection)
        try batch.patch(stored, CanonicalJSON("{\"reportingTemplates\": [\(all)]}"), decision: 0)
        _ = try batch.commit(on: &acme.connection)

        // The back end has other choices now: the poller's own are deleted.
        try World.nextRun(&acme, 2)
        var second = World.data(["P1"], below: "Project")
        second.templates[0].id = UUID()
        second.contexts[0].id = UUID()
        second.templates[0].fields.reportingContexts = [second.contexts[0].id]
        try World.poll(.data(second, [], days), &acme)
        let left = try World.objects([.reportingTemplate, .reportingContext, .reportingTreeNode], in: own, &acme)
        #expect(
            Set(left.filter { $0.fields != nil }.map(\.key.id))
                == [template, context, node, second.templates[0].id, second.contexts[0].id])
        let offered = try #require(try World.objects([.user], in: own, &acme).first)
        #expect(
            try offered.decoded(as: User.self, by: JSONDecoder())?.reportingTemplates
                == [second.templates[0].id, template])
        // In the usual spelling of ids, for comparisons of texts.
        let json = String(decoding: try #require(offered.fields).bytes, as: UTF8.self)
        #expect(json.contains(template.text) && json.contains(second.templates[0].id.text))
    }
}
