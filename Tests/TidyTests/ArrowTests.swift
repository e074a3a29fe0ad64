import Environments
import LocalCluster
import Testing

/// Who may import whom.
@Suite struct ArrowTests {
    /// Package.swift names what the sources import, no more and no less.
    @Test func aTargetDependsOnWhatItImports() throws {
        let package = try PackageModules()
        #expect(package.modules.count > 30)
        let own = Set(package.modules.map(\.name))
        let others = package.modules.reduce(into: Set<String>()) { $0.formUnion($1.others) }
        for module in package.modules
        where !["CBroker", "TidyTests"].contains(module.name) && !module.path.hasPrefix("Shared/CLibraries/") {
            let imports = module.imports
            let needed = Set(imports.keys).subtracting([module.name])
            for name in needed.intersection(own.union(others)).subtracting(module.own.union(module.others)) {
                Issue.record("\(imports[name] ?? ""): \(module.name) imports \(name), which Package.swift does not say")
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

    /// What is for developers alone: stand-ins, tools and checks.
    static let notShipped: Set = [
        "BackendContract", "CBroker", "CompassContract", "DataFiles", "LocalCluster", "Sandbox", "Workbench",
    ]

    @Test func nothingThatShipsImportsATool() throws {
        let package = try PackageModules()
        for module in package.modules
        where !module.isTest && !module.path.hasPrefix("Tests/") && !Self.notShipped.contains(module.name) {
            let tools = package.reachable(from: module.name).intersection(Self.notShipped)
            #expect(tools.isEmpty, "\(module.name) ships, and needs \(tools.sorted())")
        }
    }

    /// What a rule may know: values, what an adapter promises, what a worker is told, how ids are made, and what a login
    /// can say.
    static let ofRules: Set = [
        "BackendProtocol", "Catalogues", "Environments", "Essentials", "FoundationEssentials", "Identity", "Model",
        "Work",
    ]

    @Test func aRuleKnowsValuesOnly() {
        let line = /^(?:public |package |internal |private )*import (\w+)/
        for file in SourceFile.all where file.isRule {
            for (index, text) in file.lines.enumerated() {
                guard let found = text.prefixMatch(of: line), !Self.ofRules.contains(String(found.1)) else { continue }
                Issue.record("\(file.path):\(index + 1): a rule does not import \(found.1)")
            }
        }
    }

    /// Whoever uses a module says so.
    @Test func nothingIsImportedForOthers() {
        for file in SourceFile.all {
            for line in file.lines(with: "@_exported") {
                Issue.record("\(file.path):\(line): who uses a module imports it")
            }
        }
    }
}
