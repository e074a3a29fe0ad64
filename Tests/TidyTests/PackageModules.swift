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
        // An example imports as a package of its own does.
        for found in text.matches(of: target) where !found.4.hasPrefix("examples/") {
            modules.append(
                Module(String(found.2), at: String(found.4), found.3 ?? "", products, isTest: found.1 == "testTarget"))
        }
        for found in text.matches(of: /"[a-z-]+", "(\w+)",\s*\[([^\]]*)\]/) {
            modules.append(Module(String(found.1), at: "Services/\(found.1)", found.2, products, isTest: false))
        }
        let c = text.matches(of: /\.systemLibrary\(name: "(\w+)", path: "(Shared[^"]+)"/).map {
            Module(String($0.1), at: String($0.2), "", [:], isTest: false)
        }
        self.modules = modules + c
    }

    func module(_ name: String) -> Module? { modules.first { $0.name == name } }

    /// The modules of this package that a module imports, directly or through others.
    func reachable(from name: String) -> Set<String> {
        var found: Set<String> = []
        var waiting = Array(module(name)?.own ?? [])
        while let next = waiting.popLast() {
            guard found.insert(next).inserted else { continue }
            waiting += module(next)?.own ?? []
        }
        return found
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
        for file in SourceFile.all where file.path.hasPrefix(path + "/") {
            for text in file.lines {
                if let found = text.prefixMatch(of: line) { imports[String(found.1)] = file.path }
            }
        }
        return imports
    }
}

/// A layer of the package, from the lowest to the highest.
enum Layer: String, CaseIterable, Comparable {
    case foundation = "Shared/Foundation/"
    case model = "Shared/Model"
    case clients = "Shared/Clients/"
    case connectors = "Shared/Connectors/"
    case platform = "Shared/Platform/"
    case store = "Shared/Store/"
    case worker = "Shared/Worker/"
    case admin = "Shared/Admin/"
    case device = "Shared/Device/"
    case services = "Services/"
    case tools = "Tools/"

    var title: String { rawValue.split(separator: "/").last.map(String.init) ?? rawValue }

    static func < (a: Layer, b: Layer) -> Bool {
        guard let a = allCases.firstIndex(of: a), let b = allCases.firstIndex(of: b) else { return false }
        return a < b
    }
}

extension PackageModules.Module {
    /// `nil` for modules of tests.
    var layer: Layer? { Layer.allCases.first { path.hasPrefix($0.rawValue) } }
}

extension PackageModules {
    /// Whether a module links the adapter of a back end or of a defect tracker.
    func linksAdapter(_ name: String) -> Bool { !reachable(from: name).isDisjoint(with: ["Backends", "Compass"]) }
}

/// The picture of the layers.
enum ModulePicture {
    /// A box of the picture.
    private struct Box {
        let id: String
        let title: String
        let names: [String]
    }

    /// All layers as a Mermaid diagram with the modules in each. An arrow points to a layer that modules import from;
    /// arrows that follow from others are left out.
    static func diagram() throws -> String {
        let package = try PackageModules()
        let boxes = try boxes(of: package)
        var arrows: [String: Set<String>] = [:]
        for box in boxes {
            let imported = box.names.reduce(into: Set<String>()) { $0.formUnion(package.module($1)?.own ?? []) }
            arrows[box.id] = Set(boxes.filter { !imported.isDisjoint(with: $0.names) }.map(\.id)).subtracting([box.id])
        }
        func reachable(from id: String) -> Set<String> {
            (arrows[id] ?? []).reduce(into: []) { $0.formUnion(reachable(from: $1).union([$1])) }
        }
        var lines = ["```mermaid", "graph TD"]
        for box in boxes {
            lines.append("  \(box.id)[\"<b>\(box.title)</b><br>\(box.names.joined(separator: "<br>"))\"]")
        }
        for box in boxes {
            let targets = arrows[box.id] ?? []
            for target in targets.sorted() where !targets.contains(where: { reachable(from: $0).contains(target) }) {
                lines.append("  \(box.id) --> \(target)")
            }
        }
        return (lines + ["```"]).joined(separator: "\n")
    }

    /// The C libraries are left out; services are in two boxes.
    private static func boxes(of package: PackageModules) throws -> [Box] {
        var boxes: [Box] = []
        for layer in Layer.allCases.reversed() {
            let names = package.modules.filter { module in
                module.layer == layer && !module.path.hasPrefix("Shared/Clients/CLibraries/")
            }.map(\.name).sorted()
            #expect(!names.isEmpty, "\(layer) has no module")
            if layer == .services {
                let calling = names.filter(package.linksAdapter)
                boxes.append(Box(id: "calling", title: "Services with adapters", names: calling))
                boxes.append(
                    Box(id: "others", title: "Services without adapters", names: names.filter { !calling.contains($0) })
                )
            } else {
                boxes.append(Box(id: "\(layer)", title: layer.title, names: names))
            }
        }
        #expect(boxes.count <= 15)
        return boxes
    }
}
