import LocalCluster
import Tenants
import Testing

/// The imports between modules.
@Suite struct ArrowTests {
    /// Package.swift names what the sources import, no more and no less.
    @Test func targetDependenciesMatchImports() throws {
        let package = try PackageModules()
        #expect(package.modules.count > 30)
        let own = Set(package.modules.map(\.name))
        let others = package.modules.reduce(into: Set<String>()) { $0.formUnion($1.others) }
        for module in package.modules
        where !["CBroker", "TidyTests"].contains(module.name) && !module.path.hasPrefix("Shared/Clients/CLibraries/") {
            let imports = module.imports
            let needed = Set(imports.keys).subtracting([module.name])
            for name in needed.intersection(own.union(others)).subtracting(module.own.union(module.others)) {
                Issue.record("\(imports[name] ?? ""): \(module.name) imports \(name), which Package.swift lacks")
            }
            // A product may be made of modules of other names.
            for name in module.own.subtracting(needed) {
                Issue.record("Package.swift: \(module.name) depends on \(name), which it does not import")
            }
            for name in module.others.subtracting(needed) where !(name == "Metrics" && needed.contains("CoreMetrics")) {
                Issue.record("Package.swift: \(module.name) depends on \(name), which it does not import")
            }
        }
    }

    /// A module imports modules of its own and of lower layers.
    @Test func importsPointDown() throws {
        let package = try PackageModules()
        for module in package.modules where !module.isTest && !module.path.hasPrefix("Tests/") {
            let layer = try #require(module.layer, "\(module.path) belongs to no layer")
            for other in module.own {
                let below = try #require(package.module(other)?.layer)
                #expect(below <= layer, "\(module.name) (\(layer)) imports \(other) (\(below))")
            }
        }
    }

    /// Modules of `Shared` that are only for tests of adapters, in this package and in others.
    static let forTestsOnly: Set = ["BackendContract"]

    @Test func shippedModulesImportNoTool() throws {
        let package = try PackageModules()
        let tools = Set(package.modules.filter { $0.layer == .tools }.map(\.name)).union(Self.forTestsOnly)
        for module in package.modules where module.layer.map({ $0 < .tools }) == true {
            let imported = package.reachable(from: module.name).intersection(tools)
            #expect(imported.isEmpty, "\(module.name) ships and imports \(imported.sorted())")
        }
    }

    /// Services that call no back end link no adapter.
    static let withoutAdapter: Set = [
        "ChangeRelay", "LagMonitor", "LocationFanOut", "NoticeDeliverer", "Onboarding", "ShareFanOut", "TaskFanOut",
    ]

    @Test func servicesThatCallNoBackEndLinkNoAdapter() throws {
        let package = try PackageModules()
        let services = package.modules.filter { $0.layer == .services }.map(\.name)
        let found = services.filter { !package.linksAdapter($0) }
        #expect(Set(found) == Self.withoutAdapter)
    }

    /// The modules of values, which a rule may import.
    static let ofRules: Set = [
        "Access", "BackendProtocol", "Catalogues", "Essentials", "FoundationEssentials", "Identity", "KeyedWorker",
        "KindSchema", "Model", "Tenants",
    ]

    @Test func rulesImportModulesOfValues() {
        let line = /^(?:public |package |internal |private )*import (\w+)/
        let rules = SourceFile.all.filter(\.isRule)
        #expect(rules.count > 40)
        for file in rules {
            for (index, text) in file.lines.enumerated() {
                guard let found = text.prefixMatch(of: line), !Self.ofRules.contains(String(found.1)) else { continue }
                Issue.record("\(file.path):\(index + 1): a rule does not import \(found.1)")
            }
        }
    }

    @Test func modulesAreNotReexported() {
        for file in SourceFile.all {
            for line in file.lines(with: "@_exported") {
                Issue.record("\(file.path):\(line): each file imports the modules that it uses")
            }
        }
    }
}
