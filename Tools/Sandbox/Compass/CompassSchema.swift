/// The record type: Defect of the vendor's sample database SAMPL, after its documents.
///
/// Source: the sample app's documents and data (fields, severities, priorities, states), and the vendor's page "Records
/// and record types"; other actions are those of the defect schema that is shipped with the product.
enum CompassSchema {
    static let recordType = "Defect"
    /// Ids are this and eight digits.
    static let idPrefix = "SAMPL"
    /// The dbid of record 1 is the next number.
    static let dbidBase = 33_554_432

    struct FieldDefinition: Sendable {
        let name: String
        let type: String
        /// Characters of a short text; 0: as many as one likes.
        var lengthMax: Int { type == "SHORT_STRING" ? 254 : 0 }
    }

    static let fields = types.map { FieldDefinition(name: $0.key, type: $0.value) }

    /// In the order in which answers have them: the sample app reads Headline at 5, id at 7 and State at 24.
    private static let types: KeyValuePairs = [
        "record_type": "RECORD_TYPE", "is_active": "INT", "version": "INT", "lock_version": "INT", "dbid": "DBID",
        "Headline": "SHORT_STRING", "Description": "MULTILINE_STRING", "id": "ID", "Severity": "SHORT_STRING",
        "Priority": "SHORT_STRING", "Submitter": "REFERENCE", "Submit_Date": "DATE_TIME", "Owner": "REFERENCE",
        "Project": "REFERENCE", "Component": "SHORT_STRING", "Keywords": "MULTILINE_STRING",
        "Symptoms": "MULTILINE_STRING", "Resolution": "SHORT_STRING", "Note_Entry": "MULTILINE_STRING",
        "Notes_Log": "MULTILINE_STRING", "customer": "REFERENCE", "customer_severity": "SHORT_STRING",
        "ratl_mastership": "REFERENCE", "is_duplicate": "INT", "State": "STATE", "old_id": "SHORT_STRING",
    ]

    static let fieldsByName = Dictionary(uniqueKeysWithValues: fields.map { ($0.name, $0) })

    /// Fields that users do not write.
    static let readOnly: Set = [
        "record_type", "is_active", "version", "lock_version", "dbid", "id", "Submitter", "Submit_Date", "Notes_Log",
        "ratl_mastership", "is_duplicate", "State", "old_id",
    ]

    static let severities = ["1-Critical", "2-Major", "3-Average", "4-Minor", "5-Enhancement"]
    static let priorities = ["1-Resolve Immediately", "2-Give High Attention", "3-Normal Queue"]
    static let resolutions = ["Fixed", "Not Reproducible", "Works as designed", "Duplicate", "Postponed"]

    /// An action that changes the state.
    struct Action: Sendable {
        let name: String
        let type: String
        var sources: [String] = []
        var destination: String?
        /// Fields that are mandatory for the action, in addition to those that always are.
        var mandatory: Set<String> = []
    }

    static let states = ["Submitted", "Assigned", "Opened", "Resolved", "Closed", "Postponed"]

    static let actions = [
        Action(name: "Submit", type: "_SUBMIT", destination: "Submitted"),
        Action(name: "Modify", type: "_MODIFY", sources: states),
        Action(name: "Delete", type: "_DELETE", sources: states),
        Action(
            name: "Assign", type: "_CHANGE_STATE", sources: ["Submitted", "Assigned", "Opened", "Postponed"],
            destination: "Assigned", mandatory: ["Owner", "Priority"]),
        Action(
            name: "Open", type: "_CHANGE_STATE", sources: ["Submitted", "Assigned"], destination: "Opened",
            mandatory: ["Owner"]),
        Action(
            name: "Resolve", type: "_CHANGE_STATE", sources: ["Opened"], destination: "Resolved",
            mandatory: ["Resolution"]),
        Action(name: "Validate", type: "_CHANGE_STATE", sources: ["Resolved"], destination: "Closed"),
        Action(name: "Reject", type: "_CHANGE_STATE", sources: ["Resolved"], destination: "Opened"),
        Action(
            name: "Postpone", type: "_CHANGE_STATE", sources: ["Submitted", "Assigned", "Opened"],
            destination: "Postponed"),
        Action(name: "Re_open", type: "_CHANGE_STATE", sources: ["Closed", "Postponed"], destination: "Opened"),
    ]

    static func action(_ name: String) -> Action? { actions.first { $0.name == name } }
}
