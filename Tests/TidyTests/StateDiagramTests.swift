import Foundation
import Model
import Testing

/// The diagrams of docs/contributors/state-machines.md have the states of the code.
@Suite struct StateDiagramTests {
    private struct Transition: Hashable {
        let from: String
        let to: String
    }

    private struct Diagram {
        var states: Set<String> = []
        /// A transition of a composite state is one of each of its states.
        var transitions: Set<Transition> = []

        /// - Parameter section: Heading above the Mermaid block.
        init(section: String) throws {
            let text = try #require(projectText("docs/contributors/state-machines.md"))
            let body = try #require(text.split(separator: "\n## ").first { $0.hasPrefix(section + "\n") })
            let diagram = try #require(body.firstMatch(of: /```mermaid\n([\s\S]*?)```/)).output.1
            var members: [String: Set<String>] = [:]
            var aliases: [String: String] = [:]
            var composite: String?
            var pairs: [[String]] = []
            for line in diagram.split(separator: "\n") {
                let line = line.trimmingPrefix(#/ +/#)
                if let match = line.wholeMatch(of: /state "(.*)" as (\w+)( \{)?/) {
                    let name = String(match.output.2)
                    if match.output.3 == nil { aliases[name] = String(match.output.1) } else { composite = name }
                } else if line == "}" {
                    composite = nil
                } else if let match = line.prefixMatch(of: /(\S+) --> (\S+)/) {
                    let pair = [String(match.output.1), String(match.output.2)]
                    if let composite { members[composite, default: []].formUnion(pair) }
                    pairs.append(pair)
                }
            }
            for pair in pairs {
                let ends = pair.map { name in
                    (members[name] ?? [name]).subtracting(["[*]"]).map { aliases[$0] ?? $0 }
                }
                states.formUnion(ends.joined())
                for from in ends[0] { for to in ends[1] { transitions.insert(Transition(from: from, to: to)) } }
            }
        }
    }

    /// Names of the cases of an enumeration, read from the source text.
    private static func cases(of enumeration: String, in type: String? = nil) throws -> Set<String> {
        let declaration = "enum \(enumeration):"
        let file = try #require(
            SourceFile.all.first { file in
                !file.lines(with: declaration).isEmpty && type.map { !file.lines(with: $0 + ":").isEmpty } ?? true
            })
        let start = try #require(file.lines(with: declaration).first) - 1
        let indentation = file.lines[start].prefix { $0 == " " }
        let body = file.lines[start...].prefix { $0 != indentation + "}" }
        let names = body.map { $0.trimmingPrefix(#/ +/#) }.filter { $0.hasPrefix("case ") }.flatMap { line in
            line.dropFirst("case ".count).replacing(/\(.*\)/, with: "").split(separator: ", ").map(String.init)
        }
        return Set(names)
    }

    @Test func entryDiagramHasTheStatusesAndTheirSuccessors() throws {
        let diagram = try Diagram(section: "Time entry")
        #expect(diagram.states == Set(EntryStatus.allCases.map(\.rawValue)))
        // The text below the diagram has these: an observation may move them to any status in the back end.
        let observed: [EntryStatus] = [.released, .rejected, .approved, .recorded]
        let inText = [EntryStatus.draft, .submitted, .invalid].flatMap { from in
            observed.map { Transition(from: from.rawValue, to: $0.rawValue) }
        }
        let allowed = EntryStatus.allCases.flatMap { from in
            from.successors.map { Transition(from: from.rawValue, to: $0.rawValue) }
        }
        #expect(diagram.transitions.union(inText) == Set(allowed))
    }

    @Test func moveDiagramHasTheStates() throws {
        #expect(try Diagram(section: "Move of an environment").states == Self.cases(of: "MoveState"))
    }

    @Test func ledgerDiagramHasThePhases() throws {
        let phases = try Self.cases(of: "Phase", in: "struct Ledger")
        #expect(try Diagram(section: "Attempt in the ledger").states == phases)
    }

    @Test func circuitBreakerDiagramHasTheStates() throws {
        let states = try Self.cases(of: "State", in: "struct CircuitBreaker")
        #expect(try Diagram(section: "Circuit breaker").states == states)
    }
}
