import Essentials
import Foundation
import Model
import TestSupport

/// Valid objects of each kind: a value for every field, as JSON.
enum PermissionBodies {
    /// The golden files' values, except fields that only a back end or an admin writes.
    private static let samples: [Kind: [String: String]] = {
        var samples: [Kind: [String: String]] = [:]
        for kind in Kind.allCases {
            guard let data = try? golden("\(kind.rawValue).v1"), let object = try? JSONObject(Array(data)) else {
                continue
            }
            let members = object.members.map { ($0.key, String(decoding: object.bytes[$0.value], as: UTF8.self)) }
            samples[kind] = Dictionary(uniqueKeysWithValues: members)
        }
        samples[.timeEntry]?["status"] = "\"draft\""
        samples[.person]?["role"] = "\"worker\""
        // A submitted command cannot be changed.
        samples[.defectCommand]?["submitRequested"] = "false"
        // On a copy it must be the writer's.
        samples[.fieldTask]?["completedBy"] = "null"
        // A text or an image is required: here the text.
        samples[.taskNote]?["image"] = "null"
        return samples
    }()

    private static let requiredNames: [Kind: [String]] = samples.reduce(into: [:]) { required, sample in
        let names = sample.value.keys.sorted()
        required[sample.key] = names.filter { name in
            let others = json(names.filter { $0 != name }, sample.value)
            return sample.key.objection(to: Array(others.utf8)) != nil
        }
    }

    /// Returns valid values of all fields. `own` has those that depend on the object's id or on the writer.
    static func values(_ kind: Kind, _ own: [String: String] = [:]) -> [String: String] {
        (samples[kind] ?? [:]).merging(own) { _, own in own }
    }

    /// Returns the required fields.
    static func required(_ kind: Kind) -> [String] { requiredNames[kind] ?? [] }

    /// Returns fields as JSON; an unknown field gets a value that any field could have.
    static func json(_ names: [String], _ values: [String: String]) -> String {
        "{" + names.map { "\"\($0)\":\(values[$0] ?? "0")" }.joined(separator: ",") + "}"
    }

    static func membership(_ person: UUID, _ team: UUID) -> (id: UUID, own: [String: String]) {
        (Membership.id(of: person, in: team), ["person": "\"\(person.text)\"", "team": "\"\(team.text)\""])
    }

    static func sharedItem(_ item: UUID, _ recipient: UUID) -> (id: UUID, own: [String: String]) {
        (SharedItem.id(of: item, with: recipient), ["item": "\"\(item.text)\"", "recipient": "\"\(recipient.text)\""])
    }

    static func share(_ owner: UUID, _ recipient: UUID) -> [String: String] {
        ["owner": "\"\(owner.text)\"", "recipient": "\"\(recipient.text)\""]
    }
}
