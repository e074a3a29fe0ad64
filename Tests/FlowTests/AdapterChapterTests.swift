import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// The package that docs/adapters.md shows, built as it stands there beside this one, keeps
    /// the contract. The network is not asked: what this package depends on is fetched already.
    @Test(.timeLimit(.minutes(20))) func theDocumentsAdapterKeepsTheContract() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = try ClusterFolder("adapter")
        defer { folder.remove() }
        let files = try Self.files(root)
        #expect(
            files.keys.sorted() == [
                "Package.swift", "Sources/Acme/AcmeBackend.swift", "Tests/AcmeTests/ContractTests.swift",
            ])
        for (path, text) in files {
            let file = URL(filePath: folder.path + "/acme/" + path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/fieldpost", withDestinationPath: root.path)
        try FileManager.default.copyItem(
            atPath: root.path + "/Package.resolved", toPath: folder.path + "/acme/Package.resolved")
        try FileManager.default.createDirectory(atPath: folder.path + "/acme/.build", withIntermediateDirectories: true)
        let fetched = root.path + "/.build/repositories"
        if FileManager.default.fileExists(atPath: fetched) {
            try FileManager.default.copyItem(atPath: fetched, toPath: folder.path + "/acme/.build/repositories")
        }
        let variables = ProcessInfo.processInfo.environment
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: "/usr/bin/env",
                arguments: [
                    "-C", folder.path + "/acme", "swift", "test", "--disable-automatic-resolution", "--jobs", "2",
                ],
                environment: [
                    "PATH": variables["PATH"] ?? "/usr/bin:/bin", "HOME": variables["HOME"] ?? folder.path,
                    ClusterFolder.mark: folder.path,
                ], logPath: folder.path + "/log"))
        try await eventually("the adapter is built and tried", within: .seconds(1_100)) {
            process.isRunning ? process.logTail(bytesMax: 500) : nil
        }
        let said = process.logTail(bytesMax: 20_000)
        #expect(process.end == .exited(status: 0), "\(said)")
        #expect(said.split(separator: "\n").count { $0.hasPrefix("passed   ") } == 26, "\(said)")
        #expect(said.contains("acmeKeepsTheContract() passed"), "\(said)")
    }

    /// The files of the chapter: blocks whose first line is a comment with the file's path.
    private static func files(_ root: URL) throws -> [String: String] {
        let text = try String(contentsOf: root.appendingPathComponent("docs/adapters.md"), encoding: .utf8)
        var files: [String: String] = [:]
        for block in text.components(separatedBy: "```swift\n// ").dropFirst() {
            let lines = try #require(block.components(separatedBy: "\n```").first).split(
                separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
            files[String(lines[0])] = lines.count > 1 ? String(lines[1]) + "\n" : ""
        }
        return files
    }
}
