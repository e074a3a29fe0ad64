import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

/// The picker offers exactly the selections for which the submitter does not reject an entry.
@Suite(.ownThreads) struct PickerPropertyTests {
    private static let seeds = Seeds.random(150, for: "picker")

    /// An entry whose selections were offered one after the other.
    private static func walk(_ world: PickerWorld, _ random: inout SplitMix64) -> TimeEntry {
        var entry = world.entry
        for index in world.template.reportingContexts.indices {
            let choice = world.picker.form(for: entry).choices[index]
            guard choice.isChangeable, let option = choice.sections.flatMap(\.options).randomElement(using: &random),
                choice.isRequired || random.happens(60)
            else { continue }
            entry.reporting = world.picker.selections(bySelecting: option.id, for: choice.id, of: entry)
            #expect(entry.reporting.last == ReportingSelection(context: choice.id, node: option.id))
        }
        return entry
    }

    @Test func offeredSelectionsAreAccepted() {
        var acceptedCount = 0
        for seed in Self.seeds {
            var random = SplitMix64(seed: seed)
            let world = PickerWorld(&random)
            let entry = Self.walk(world, &random)
            let form = world.picker.form(for: entry)
            #expect(form.selections == entry.reporting, "seed \(seed)")
            // Only preselected nodes can be rejected: all others were offered.
            let isComplete = form.choices.allSatisfy {
                $0.rejected.isEmpty && !($0.isRequired && $0.selected.isEmpty)
            }
            let problems = EntryRules.problems(of: entry, in: world.picker.objects)
            #expect(problems == form.problems.map(\.message), "seed \(seed)")
            #expect(problems.isEmpty == isComplete, "seed \(seed): \(problems)")
            #expect(!isComplete || world.picker.templates.count == 1, "seed \(seed)")
            if isComplete { acceptedCount += 1 }
        }
        #expect(acceptedCount >= Self.seeds.count / 20)
    }

    @Test func nodesThatAreNotOfferedAreRejected() {
        var (offeredCount, rejectedCount) = (0, 0)
        for seed in Self.seeds {
            var random = SplitMix64(seed: seed)
            let world = PickerWorld(&random)
            let entry = Self.walk(world, &random)
            let choices = world.picker.form(for: entry).choices
            for (index, choice) in choices.enumerated() {
                // A rejected default before the context makes the entry invalid already.
                guard choices[..<index].allSatisfy(\.rejected.isEmpty) else { break }
                let offered = Set(choice.sections.flatMap(\.options).map(\.id))
                for node in Array(world.picker.objects.nodes.keys) + [random.id()] {
                    var changed = entry
                    changed.reporting.removeAll { $0.context == choice.id }
                    changed.reporting.append(ReportingSelection(context: choice.id, node: node))
                    let problems = world.picker.objects.problems(of: changed).filter { $0.context == choice.id }
                    let isOffered = choice.isChangeable ? offered.contains(node) : choice.selected == [node]
                    #expect(problems.isEmpty == isOffered, "seed \(seed): \(choice.name), \(problems)")
                    if isOffered { offeredCount += 1 } else { rejectedCount += 1 }
                    if isOffered { continue }
                    #expect(!EntryRules.problems(of: changed, in: world.picker.objects).isEmpty, "seed \(seed)")
                }
            }
        }
        #expect(offeredCount >= Self.seeds.count / 2 && rejectedCount >= Self.seeds.count)
    }

    @Test func selectionsOfOtherContextsAreRejected() {
        for seed in Self.seeds {
            var random = SplitMix64(seed: seed)
            let world = PickerWorld(&random)
            var entry = Self.walk(world, &random)
            entry.reporting.append(
                ReportingSelection(context: random.id(), node: world.picker.objects.nodes.keys.first ?? random.id()))
            #expect(!EntryRules.problems(of: entry, in: world.picker.objects).isEmpty, "seed \(seed)")
            #expect(world.picker.form(for: entry).selections == Array(entry.reporting.dropLast()), "seed \(seed)")
        }
    }

    /// The selections of a form of any entry are possible, with the same choices.
    @Test func selectionsOfAFormAreStable() {
        for seed in Self.seeds {
            var random = SplitMix64(seed: seed)
            let world = PickerWorld(&random)
            let nodes = Array(world.picker.objects.nodes.keys).sorted()
            var entry = world.entry
            entry.backendId = random.happens(30) ? "4711" : nil
            for context in world.template.reportingContexts where random.happens(80) {
                let node = nodes.randomElement(using: &random) ?? random.id()
                entry.reporting.append(ReportingSelection(context: context, node: node))
            }
            let first = world.picker.form(for: entry)
            entry.reporting = first.selections
            let second = world.picker.form(for: entry)
            #expect(second.selections == first.selections, "seed \(seed)")
            #expect(second.choices.map(\.selected) == first.choices.map(\.selected), "seed \(seed)")
            #expect(second.choices.map(\.sections) == first.choices.map(\.sections), "seed \(seed)")
        }
    }
}

/// Random reporting data: trees with missing parents and cycles, sections with missing nodes, dependencies, defaults,
/// and hidden and read-only contexts.
private struct PickerWorld {
    let picker: ReportingPicker
    let template: ReportingTemplate
    let entry: TimeEntry

    init(_ random: inout SplitMix64) {
        let nodes = Self.nodes(&random)
        let ids = nodes.keys.sorted()
        var contexts: [UUID: ReportingContext] = [:]
        let order = (0..<4).map { _ in random.id() }
        for (index, id) in order.enumerated() { contexts[id] = Self.context(index, ids, &random) }
        template = ReportingTemplate(name: "T", type: "t", reportingContexts: order)
        let templateID = random.id()
        let objects = ReportingObjects(templates: [templateID: template], contexts: contexts, nodes: nodes)
        picker = ReportingPicker(objects, templates: [templateID])
        entry = TimeEntry(reportingTemplate: templateID, entryDate: Day("2015-03-30"), durationSeconds: 3_600)
    }

    private static func nodes(_ random: inout SplitMix64) -> [UUID: ReportingTreeNode] {
        var nodes: [UUID: ReportingTreeNode] = [:]
        var ids: [UUID] = []
        for index in 0..<24 {
            let id = random.id()
            let parent = index < 3 || random.happens(10) ? nil : ids.randomElement(using: &random)
            let dependencyCount = Int.random(in: 0...3, using: &random)
            let dependencies = (0..<dependencyCount).compactMap { _ in
                random.happens(10) ? random.id() : ids.randomElement(using: &random)
            }
            nodes[id] = ReportingTreeNode(
                name: "n\(index % 7)", parent: random.happens(5) ? random.id() : parent,
                hasDependencies: random.happens(50), dependencies: dependencies)
            ids.append(id)
        }
        // Two cycles: of a node with itself, and of a root with its descendant.
        if random.happens(30) { nodes[ids[5]]?.parent = ids[5] }
        if random.happens(30) { nodes[ids[0]]?.parent = ids[10] }
        return nodes
    }

    private static func context(_ index: Int, _ ids: [UUID], _ random: inout SplitMix64) -> ReportingContext {
        let sections = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            let items = (0..<Int.random(in: 0...5, using: &random)).map { _ in
                random.happens(10) ? random.id() : ids.randomElement(using: &random) ?? random.id()
            }
            let root = ids.randomElement(using: &random)
            return ReportingContext.Section(
                name: "s", showCount: random.happens(50) ? Int.random(in: -1...9, using: &random) : nil,
                items: random.happens(60) ? items : nil, rootNode: random.happens(60) ? root : nil)
        }
        let isFixed = random.happens(25)
        let listed = sections.flatMap { $0.items ?? [] }
        let candidates = random.happens(70) && !listed.isEmpty ? listed : ids
        let preselected = random.happens(isFixed ? 80 : 25) ? candidates.randomElement(using: &random) : nil
        return ReportingContext(
            name: "c\(index)", required: random.happens(50), sections: sections,
            preselected: [preselected].compactMap(\.self), visible: !isFixed || random.happens(50),
            readOnly: isFixed && random.happens(50))
    }
}
