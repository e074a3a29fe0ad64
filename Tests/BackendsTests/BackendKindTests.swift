import BackendProtocol
import TestSupport
import Testing

@testable import Backends

/// The kinds of back ends that an executable of another package adds.
@Suite(.ownThreads) struct BackendKindTests {
    @Test func kindsOfOtherPackagesAreAdded() {
        #expect(BackendKind.problem(adding: ["acme", "acme-2"]) == nil)
    }

    @Test(arguments: [["sap"], ["none"], ["acme", "acme"]]) func duplicateKindIsRefused(names: [String]) {
        #expect(BackendKind.problem(adding: names)?.hasPrefix("there is already a kind of back end '") == true)
    }

    @Test(arguments: ["", "Acme", "2acme", "-acme", "a_b", "é", String(repeating: "a", count: 32)])
    func invalidKindIsRefused(name: String) {
        #expect(BackendKind.problem(adding: [name])?.contains("1 to 31 lower-case letters") == true)
    }

    @Test func kindWithoutAdapterNamesEnvironment() {
        let expected = MissingBackend(
            "environment north has a back end of kind 'acme', but this program has adapters for sap, economic only")
        #expect(throws: expected) { try BackendKind.named("acme", of: "north") }
    }
}
