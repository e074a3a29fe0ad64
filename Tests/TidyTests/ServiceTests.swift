import Foundation
import LocalCluster
import Model
import TestSupport
import Testing

/// `Services`, the folders of `Services/` and Package.swift agree.
@Suite struct ServiceTests {
    /// Executables that are command lines and not services.
    static let commands: Set = ["Fieldpost"]

    @Test func everyFolderIsListed() throws {
        let path = projectFolder.appendingPathComponent("Services").path
        let folders = Set(try FileManager.default.contentsOfDirectory(atPath: path))
        #expect(folders == Set(Services.all.map(\.target)).union(Self.commands))
    }

    @Test(arguments: Services.all.map(\.name)) func listedServiceIsAnExecutable(name: String) throws {
        let service = try #require(Services.all.first { $0.name == name })
        let package = try #require(projectText("Package.swift")).replacing(/\s+/, with: " ").replacing("( ", with: "(")
        #expect(package.contains("(\"\(name)\", \"\(service.target)\","), "Package.swift has a line for it")
        let folder = "Services/\(service.target)/"
        let main = try #require(
            projectText(folder + "main.swift") ?? projectText(folder + "\(service.target)Service.swift"))
        #expect(main.contains("await serve(\"\(name)\""))
        #expect(main.contains("topics: [Topics.") == !service.topics.isEmpty, "what reads a topic has it in its row")
    }

    @Test func namesAndPortsAreUnique() {
        func expectOnce<Value: Hashable>(_ values: [Value]) { #expect(Set(values).count == values.count) }
        expectOnce(Services.all.map(\.name))
        expectOnce(Services.all.compactMap(\.endpoint?.name))
        expectOnce(Services.all.map(\.localAdminPort) + Services.all.compactMap(\.endpoint?.localPort))
    }
}
