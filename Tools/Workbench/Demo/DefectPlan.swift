/// The changes of defects that the demo's people make in Compass itself.
///
/// In each phase a defect changes at most once, and phases are further apart than two polls: the recipients of notices
/// follow from the history alone.
struct DefectPlan: Sendable {
    /// A user's change in Compass itself; without a record it adds one.
    struct Step: Encodable, Sendable {
        /// The defect's headline, which no other one has.
        let headline: String
        var record: String?
        let user: String
        let action: String
        let fields: [String: String]
    }

    static let project = "Field service"
    static let components = ["Phone", "Server"]
    private static let severities = ["1-Critical", "2-Major", "3-Average", "4-Minor"]
    private static let priorities = ["1-Resolve Immediately", "2-Give High Attention", "3-Normal Queue"]
    private static let countMax = 200

    let phases: [[Step]]

    /// - Parameters:
    ///   - people: Their logins.
    ///   - environment: Its name, by which its defects are known.
    init(people: [String], environment: String) {
        var phases: [[Step]] = [[], [], []]
        let numbers = people.isEmpty ? 0..<0 : 0..<min(2 * people.count, Self.countMax)
        for number in numbers {
            let headline = "\(environment): defect \(number + 1)"
            func person(_ offset: Int) -> String { people[(number + offset) % people.count] }
            func add(_ phase: Int, _ user: String, _ action: String, _ fields: [String: String] = [:]) {
                phases[phase].append(Step(headline: headline, user: user, action: action, fields: fields))
            }
            let (submitter, owner, other) = (person(0), person(1 + number / people.count), person(3))
            add(
                0, submitter, "Submit",
                [
                    "Headline": headline, "Project": Self.project,
                    "Component": Self.components[number % Self.components.count],
                    "Severity": Self.severities[number % Self.severities.count],
                    "Priority": Self.priorities[number % Self.priorities.count], "Owner": owner,
                ])
            switch number % 4 {
            case 0:
                add(1, submitter, "Modify", ["Severity": Self.severities[(number + 1) % Self.severities.count]])
                add(2, other, "Modify", ["Priority": Self.priorities[(number + 1) % Self.priorities.count]])
            case 1:
                add(1, submitter, "Assign", ["Owner": other])
                add(2, owner, "Open")
            case 2:
                add(1, owner, "Open")
                add(2, submitter, "Resolve", ["Resolution": "Fixed"])
            default:
                add(2, owner, "Modify", ["Note_Entry": "seen"])
            }
        }
        self.phases = phases
    }
}
