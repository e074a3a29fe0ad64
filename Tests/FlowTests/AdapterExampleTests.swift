import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// The executable of `examples/acme-adapter` runs with the shipped services.
    @Test func exampleAdapterIsDeployed() async throws {
        try await AdapterFlow.run(with: LocalCluster.executables + "/AcmeServices")
    }

    /// As a target of this package, an example could use declarations that other packages do not have.
    @Test(arguments: ["acme-adapter/Sources/Acme", "inspections/swift/Sources/InspectionWorker"])
    func exampleUsesPublicDeclarationsOnly(folder: String) async throws {
        let modules = LocalCluster.executables + "/Modules"
        let sources = projectRoot.appendingPathComponent("examples/" + folder).path
        let files = try FileManager.default.contentsOfDirectory(atPath: sources).map { "\(sources)/\($0)" }
        let maps = [
            "Shared/Clients/CLibraries/CCurl", "Shared/Clients/CLibraries/CKafka",
            "examples/inspections/swift/Sources/CPDF",
        ]
        .map { projectRoot.appendingPathComponent($0).path }
        let scratch = try ClusterFolder("adapter-types")
        defer { scratch.remove() }
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/usr/bin/env",
                arguments: ["swiftc", "-typecheck", "-swift-version", "6", "-package-name", "example"]
                    + ([modules] + maps).flatMap { ["-I", $0] } + files.sorted(),
                environment: ProcessInfo.processInfo.environment, logPath: scratch.path + "/log"))
        try await eventually("the example is checked", within: .seconds(600)) {
            process.isRunning ? process.logTail(bytesMax: 500) : nil
        }
        #expect(process.end == .exited(status: 0), "\(process.logTail(bytesMax: 20_000))")
    }

    /// The package `examples/acme-adapter`, built with this package's public products, keeps the contract, and its
    /// executable runs with the shipped services.
    ///
    /// It is built in `.build/acme-adapter`, where `../..` is also the project, so that nothing is written into
    /// `examples/`. The build compiles the services and their dependencies again, so only `deploy/test --thorough` runs
    /// it. It needs no network, because this package's dependencies are already fetched.
    @Test(.enabled(if: Seeds.isThorough), .timeLimit(.minutes(90)))
    func exampleAdapterIsAPackage() async throws {
        let folder = projectRoot.appendingPathComponent(".build/acme-adapter")
        try Self.linkExample(at: folder)
        let variables = ProcessInfo.processInfo.environment
        let scratch = try ClusterFolder("adapter")
        defer { scratch.remove() }
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/usr/bin/env",
                // With a stored manifest, the build fails if files were removed from this package. Without debug
                // information, it takes less time.
                arguments: [
                    "-C", folder.path, "swift", "test", "--disable-automatic-resolution",
                    "--disable-build-manifest-caching", "-debug-info-format", "none", "--jobs", "2",
                ],
                // The same ones in each run: with other variables SwiftPM reads all manifests, and builds, again.
                environment: [
                    "PATH": variables["PATH"] ?? "/usr/bin:/bin", "HOME": variables["HOME"] ?? folder.path,
                ], logPath: scratch.path + "/log"))
        var nextLine = ContinuousClock.now
        try await eventually("the adapter is built and tried", within: .seconds(4_800)) {
            if ContinuousClock.now >= nextLine {
                // deploy/test ends tests without output.
                let lines: [Substring] = process.logTail(bytesMax: 200).split(separator: "\n")
                if let line = lines.last { print(String(line)) }
                nextLine = .now + .seconds(60)
            }
            return process.isRunning ? process.logTail(bytesMax: 500) : nil
        }
        let output = process.logTail(bytesMax: 20_000)
        try #require(process.end == .exited(status: 0), "\(output)")
        #expect(output.split(separator: "\n").count { $0.hasPrefix("passed   ") } == 27, "\(output)")
        #expect(output.contains("acmeMeetsTheContract() passed"), "\(output)")
        try await AdapterFlow.run(with: folder.appendingPathComponent(".build/debug/AcmeServices").path)
    }

    /// A package whose files are the example's, with what this package has fetched.
    private static func linkExample(at folder: URL) throws {
        let manager = FileManager.default
        let resolved = try Data(contentsOf: projectRoot.appendingPathComponent("Package.resolved"))
        let linked = folder.appendingPathComponent("Package.resolved")
        if (try? Data(contentsOf: linked)) == resolved { return }
        if manager.fileExists(atPath: folder.path) { try manager.removeItem(at: folder) }
        try manager.createDirectory(at: folder.appendingPathComponent(".build"), withIntermediateDirectories: true)
        for name in ["Package.swift", "Sources", "Tests"] {
            try manager.createSymbolicLink(
                atPath: folder.appendingPathComponent(name).path,
                withDestinationPath: "../../examples/acme-adapter/" + name)
        }
        let fetched = projectRoot.appendingPathComponent(".build/repositories")
        if manager.fileExists(atPath: fetched.path) {
            try manager.copyItem(at: fetched, to: folder.appendingPathComponent(".build/repositories"))
        }
        try resolved.write(to: linked)
    }
}

/// The project's folder, found from where this file was compiled.
let projectRoot = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
