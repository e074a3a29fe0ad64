import DataFiles
import Essentials
import FoundationEssentials

/// A real tracker as what was done in it, one change after the other: what is loaded at once can as well be played
/// back, step by step.
///
/// Lines of JSON, of the forms that the project's test data have: Bugzilla with its history, and Jira without one, of
/// which the creation and the last state are all there is.
struct CompassTracker: Sendable {
    /// The defects with their keys in the tracker. The first change makes the defect, and has no `record`.
    let defects: [(key: String, changes: [CompassChange])]
    /// All users of the tracker: login → name.
    let people: [String: String]

    /// - Throws: `DataFile.Problem`, or ``EmulatorError``, which names the line.
    init(path: String) throws {
        try self.init(lines: try DataFile.read(path).split(separator: UInt8(ascii: "\n")), of: path)
    }

    init(lines: [Data], of path: String = "data") throws {
        var defects: [(key: String, changes: [CompassChange])] = []
        var people: [String: String] = [:]
        for (index, line) in lines.enumerated() {
            let tracked: TrackedDefect
            do {
                tracked = try JSONDecoder().decode(TrackedDefect.self, from: line)
            } catch {
                throw EmulatorError("\(path), line \(index + 1): \(error)")
            }
            for person in tracked.people { people[person.id] = person.name ?? people[person.id] ?? person.id }
            defects.append((tracked.name, try tracked.changes()))
        }
        self.defects = defects
        self.people = people
    }

    /// All projects with the components that some defect is, or was, of.
    var projects: [String: [String]] {
        var projects: [String: Set<String>] = [:]
        for defect in defects {
            var (project, component) = ("", "")
            for change in defect.changes {
                project = change.fields["Project"] ?? project
                component = change.fields["Component"] ?? component
                if !project.isEmpty, !component.isEmpty { projects[project, default: []].insert(component) }
            }
        }
        return projects.mapValues { $0.sorted() }
    }

    /// Loads a file: each change becomes a row of history at its own time.
    ///
    /// - Returns: The number of defects.
    static func load(_ path: String, into system: CompassSystem, password: String) throws -> Int {
        let tracker = try CompassTracker(path: path)
        let users = tracker.people.sorted { $0.key < $1.key }.map {
            CompassUser(name: $0.key, fullName: $0.value, password: password)
        }
        system.load(CompassOrganisation(users: users, projects: tracker.projects))
        for defect in tracker.defects {
            var id: String?
            for var change in defect.changes {
                change.record = id
                do throws(CompassRules.Refusal) {
                    id = try system.perform([change]).first
                } catch {
                    throw EmulatorError("\(path), \(defect.key): \(error.message)")
                }
            }
        }
        return tracker.defects.count
    }
}
