import Foundation
import LocalCluster
import Model
import TestSupport
import Testing

/// The modules of the package as Package.swift declares them.
struct PackageModules {
    struct Module {
        let name: String
        /// The folder of its sources.
        let path: String
        /// Those of its dependencies that are modules of this package.
        var own: Set<String> = []
        /// The modules it may import of other packages.
        var others: Set<String> = []
        let isTest: Bool
    }

    let modules: [Module]

    /// Reads the targets: each is a call with `name:`, `dependencies:` and `path:`, or a row of the list of services.
    init() throws {
        let text = try #require(projectText("Package.swift"))
        var products: [String: String] = [:]
        for found in text.matches(of: /let (\w+) = Target\.Dependency\.product\(name: "(\w+)"/) {
            products[String(found.1)] = String(found.2)
        }
        var modules: [Module] = []
        let target =
            /\.(target|executableTarget|testTarget)\(\s*name: "(\w+)",(?:\s*dependencies: \[([^\]]*)\],)?\s*path: "([^"]+)"/
        for found in text.matches(of: target) {
            modules.append(
                Module(String(found.2), at: String(found.4), found.3 ?? "", products, isTest: found.1 == "testTarget"))
        }
        for found in text.matches(of: /"[a-z-]+", "(\w+)",\s*\[([^\]]*)\]/) {
            modules.append(Module(String(found.1), at: "Services/\(found.1)", found.2, products, isTest: false))
        }
        let c = text.matches(of: /\.systemLibrary\(name: "(\w+)", path: "([^"]+)"/).map {
            Module(String($0.1), at: String($0.2), "", [:], isTest: false)
        }
        self.modules = modules + c
    }

    func module(_ name: String) -> Module? { modules.first { $0.name == name } }

    /// All that a module needs of this package, directly or through others.
    func reachable(from name: String) -> Set<String> {
        var found: Set<String> = []
        var waiting = Array(module(name)?.own ?? [])
        while let next = waiting.popLast() {
            guard found.insert(next).inserted else { continue }
            waiting += module(next)?.own ?? []
        }
        return found
    }

    /// The arrows that do not follow from others.
    func essentialArrows(of name: String) -> Set<String> {
        let own = module(name)?.own ?? []
        return own.filter { target in !own.contains { $0 != target && reachable(from: $0).contains(target) } }
    }
}

extension PackageModules.Module {
    fileprivate init(
        _ name: String, at path: String, _ dependencies: some StringProtocol, _ products: [String: String], isTest: Bool
    ) {
        self.init(name: name, path: path, isTest: isTest)
        for word in dependencies.split(separator: ",").map({ $0.trimmingCharacters(in: .whitespacesAndNewlines) })
        where !word.isEmpty {
            if word.hasPrefix("\"") {
                own.insert(word.replacing("\"", with: ""))
            } else {
                others.insert(products[word] ?? word)
            }
        }
    }

    /// The modules that its sources import, each with one of the files that do.
    var imports: [String: String] {
        var imports: [String: String] = [:]
        let line =
            /^(?:@testable |@preconcurrency |public |package |internal |private )*import (?:struct |class |enum |func )?(\w+)/
        for file in SourceFile.all where file.path.hasPrefix(path + "/") && !isElsewhere(file.path) {
            for text in file.lines {
                if let found = text.prefixMatch(of: line) { imports[String(found.1)] = file.path }
            }
        }
        return imports
    }

    /// Whether a file below its folder is another module's.
    private func isElsewhere(_ file: String) -> Bool {
        name == "Workbench" && file.hasPrefix("Workbench/LocalCluster/")
    }
}

/// The picture of the modules.
enum ModulePicture {
    /// All but tests, as a diagram in Mermaid's language: an arrow goes from a module to one that it needs. Arrows that
    /// follow from others are left out.
    static func diagram() throws -> String {
        let package = try PackageModules()
        let drawn = package.modules.filter { !$0.isTest && !$0.path.hasPrefix("Tests/") && $0.name != "CBroker" }
        let groups = [
            ("tools", "Tools, which do not ship", "Workbench"), ("services", "Services", "Services/"),
            ("c", "C libraries", "Shared/CLibraries/"), ("shared", "Shared", "Shared/"),
        ]
        var lines = ["```mermaid", "graph TD"]
        var grouped: Set<String> = []
        for (id, title, folder) in groups {
            let names = drawn.filter { $0.path.hasPrefix(folder) && !grouped.contains($0.name) }.map(\.name).sorted()
            grouped.formUnion(names)
            lines += ["  subgraph \(id) [\(title)]"] + names.map { "    \($0)" } + ["  end"]
        }
        for module in drawn.sorted(by: { $0.name < $1.name }) {
            for target in package.essentialArrows(of: module.name).sorted() where target != "CBroker" {
                lines.append("  \(module.name) --> \(target)")
            }
        }
        return (lines + ["```"]).joined(separator: "\n")
    }
}
