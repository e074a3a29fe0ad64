import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Catalogues whose stored tree differs from their nodes.
@Suite(.ownThreads) struct CatalogueRepairTests {
    private typealias World = PollHandlerTests
    private typealias Reconciler = CatalogueReconcilerTests

    /// The state after manual SQL. `fieldpost repair` sets the stored tree to the actual nodes.
    @Test func lostChangedAndAddedNodesAreRepaired() throws {
        var acme = try Reconciler.environment(["ana", "ben"])
        try Reconciler.read(["ana": ["P1", "P2", "P3"], "ben": ["P1", "P2", "P3"]], 1, &acme)
        let catalogues = try Reconciler.catalogues(&acme)
        let catalogue = try #require(catalogues["ana"])
        let realm = try acme.realm(.catalogue(catalogue))
        try acme.connection.run(
            "DELETE FROM store.object WHERE realm_id = \(realm) AND fields::json->>'name' = 'P1'")
        try acme.connection.run(
            """
            UPDATE store.object SET fields = replace(fields, '"P2"', '"other"')
            WHERE realm_id = \(realm) AND fields::json->>'name' = 'P2'
            """)
        try acme.put([(UUID(), #"{"name": "stray"}"#)], .reportingTreeNode, into: .catalogue(catalogue))
        try World.settle(&acme)
        #expect(try Reconciler.held(catalogue, &acme) == ["P3", "other", "stray"])
        try acme.connection.run(AudienceStore.recount([catalogue], in: acme.id))
        try World.settle(&acme)
        #expect(try Reconciler.held(catalogue, &acme) == ["P1", "P2", "P3"])
        #expect(try Reconciler.catalogues(&acme) == catalogues)
    }

    /// A `User` object that refers to another catalogue than the person's assigned one.
    @Test func personWithWrongCatalogueIsReassigned() throws {
        var acme = try Reconciler.environment(["ana", "ben"])
        try Reconciler.read(["ana": ["P1"], "ben": ["P1"]], 1, &acme)
        let catalogues = try Reconciler.catalogues(&acme)
        let catalogue = try #require(catalogues["ana"])
        try acme.connection.run(
            """
            UPDATE store.object SET fields = replace(fields, \(catalogue.text), \(UUID().text))
            WHERE kind = \(Kind.user) AND fields::json->>'email' = 'ana@example.com'
            """)
        try World.settle(&acme)
        #expect(try Reconciler.catalogues(&acme) != catalogues)
        try acme.connection.run(AudienceStore.unplace(["ana@example.com", "ben@example.com"], in: acme.id))
        try World.settle(&acme)
        #expect(try Reconciler.catalogues(&acme) == catalogues)
        #expect(try Reconciler.held(catalogue, &acme) == ["P1"])
    }
}
