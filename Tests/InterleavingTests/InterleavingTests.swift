import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

/// Edits, submissions and deletions on devices; approvals, rejections, changes and deletions in the back end; calls
/// that are lost, late or rejected; workers that crash or share a key; polls in between. All in random order, for
/// ``entryCount`` entries of each back end.
@Suite(.ownThreads) struct InterleavingTests {
    private static let entryCount = Seeds.isThorough ? 500 : 250

    @Test(.timeLimit(.minutes(60)), arguments: Seeds.random(1, for: "interleavings with SAP"))
    func deviceRealmAndSAPConverge(seed: UInt64) async throws {
        try await run(SAPOffice.self, seed)
    }

    @Test(.timeLimit(.minutes(60)), arguments: Seeds.random(1, for: "interleavings with e-conomic"))
    func deviceRealmAndEconomicConverge(seed: UInt64) async throws {
        try await run(EconomicOffice.self, seed)
    }

    private func run<Office: BackOffice>(_: Office.Type, _ seed: UInt64) async throws {
        try await withOffice(Office.self) { office in
            var world = try await World(office, seed: seed)
            try await world.begin()
            while world.madeCount < Self.entryCount { try await world.step() }
            try await world.settle()
            let differences = try await world.differences()
            for difference in differences.prefix(5) { Issue.record("seed \(seed): \(difference)") }
            #expect(differences.isEmpty, "seed \(seed): \(differences.count) differences")
            let statuses = try world.statuses()
            let expected: Set<EntryStatus> = [.draft, .invalid, .released, .approved]
            #expect(statuses.isSuperset(of: expected), "seed \(seed): \(statuses)")
            #expect(!statuses.isDisjoint(with: [.rejected, .recorded]), "seed \(seed): \(statuses)")
        }
    }
}

/// Runs a back end's emulator with its people, in its own process.
func withOffice<Office: BackOffice>(_: Office.Type, _ body: (Office) async throws -> Void) async throws {
    let folder = try ClusterFolder("interleaving")
    let port = try Ports.free()
    let sandbox = try ClusterProcess(
        ClusterProcess.Command(
            executable: "\(LocalCluster.executables)/sandbox", arguments: [Office.kind, "--port", "\(port)"],
            environment: ["PATH": "/usr/bin:/bin", ClusterFolder.mark: folder.path],
            logPath: "\(folder.path)/sandbox.log"))
    defer { sandbox.kill9() }
    let client = Client()
    defer { client.shutDown() }
    let office = try Office(url: "http://127.0.0.1:\(port)", client: client)
    let deadline = ContinuousClock.now + patienceMax
    while !Ports.isListening(port) {
        try #require(sandbox.isRunning && .now < deadline, "\(sandbox.logTail())")
        try await Task.sleep(for: .milliseconds(20))
    }
    let organisation = Office.organisation(peopleCount: World<Office>.peopleCount)
    try #require(try await office.control("/sandbox/organisation", organisation) == 200)
    try await body(office)
}
