import Essentials
import Model

/// The rules of time entries, without a clock or random numbers. The codes are the vendor's.
enum EconomicRules {
    struct Refusal: Error {
        /// The status of the response.
        var status = 400
        let code: String
        let message: String
        var property: String?
    }

    /// The record that a request makes; its number and version are not set yet.
    static func checked(
        _ request: EconomicEntryRequest, _ master: EconomicMasterData, lockedThrough: Day?
    ) throws(Refusal) -> EconomicRecord {
        guard let day = request.day else {
            throw Refusal(
                code: "TimeEntryCannotBeCreatedUpdatedDateIsNotSet", message: "The date must be set.", property: "date")
        }
        let project = try project(request.projectNumber, master)
        let activity = try activity(request.activityNumber, on: project, master)
        let employee = try employee(request.employeeNumber, master)
        try checkPeriod(day, lockedThrough)
        return EconomicRecord(
            number: 0, employeeNumber: employee, projectNumber: project, activityNumber: activity, date: day,
            numberOfHours: request.numberOfHours ?? 0, text: request.text ?? "")
    }

    /// The record that a change or a deletion names.
    static func existing(
        _ number: Int?, _ records: EconomicRecords, lockedThrough: Day?
    ) throws(Refusal) -> EconomicRecord {
        guard let record = number.flatMap({ records[$0] }), !record.isDeleted else {
            throw Refusal(
                status: 404, code: "NotFound", message: "The time entry was not found.", property: "number")
        }
        guard !record.isApproved else {
            throw Refusal(
                code: "TimeEntryCannotBeUpdatedAlreadyApproved",
                message: "Time entry cannot be updated or deleted since it is approved.")
        }
        try checkPeriod(record.date, lockedThrough)
        return record
    }

    static func checkVersion(_ request: EconomicEntryRequest, of record: EconomicRecord) throws(Refusal) {
        guard let version = request.objectVersion else {
            throw Refusal(
                code: "ObjectVersionRequired", message: "The object version is required.", property: "objectVersion")
        }
        guard version == record.objectVersion else {
            throw Refusal(
                status: 409, code: "UpdateConflict", message: "Update conflict. Version does not match.",
                property: "version")
        }
    }

    private static func checkPeriod(_ day: Day, _ lockedThrough: Day?) throws(Refusal) {
        guard let lockedThrough, day <= lockedThrough else { return }
        throw Refusal(
            code: "TimeEntryCannotBeCreatedUpdatedOrApprovedAccountingPeriodIsClosed",
            message: "Time entry cannot be created, updated or approved, it is in a closed accounting period.",
            property: "date")
    }

    private static func project(_ number: Int?, _ master: EconomicMasterData) throws(Refusal) -> Int {
        func refusal(_ code: String, _ what: String) -> Refusal {
            Refusal(code: code, message: "Entries not allowed on \(what).", property: "projectNumber")
        }
        guard let number, let project = master.projects[number] else {
            throw refusal("EntriesNotAllowedProjectNotFound", "an inexistent project")
        }
        if project.isMainProject == true { throw refusal("EntriesNotAllowedProjectIsMain", "a main project") }
        if project.isClosed == true { throw refusal("EntriesNotAllowedProjectIsClosed", "a closed project") }
        if project.isBarred == true { throw refusal("EntriesNotAllowedProjectIsBarred", "a barred project") }
        return number
    }

    private static func activity(
        _ number: Int?, on project: Int, _ master: EconomicMasterData
    ) throws(Refusal) -> Int {
        func refusal(_ code: String, _ why: String) -> Refusal {
            Refusal(
                code: code, message: "Time entry cannot be created or updated since \(why).",
                property: "activityNumber")
        }
        guard let number, let activity = master.activities[number] else {
            throw refusal("CannotCreateUpdateActivityNotFound", "the provided activity was not found")
        }
        guard activity.isAccessible == true else {
            throw refusal("CannotCreateUpdateActivityIsBarred", "the provided activity is barred")
        }
        let links = master.links.values.filter { $0.projectNumber == project }
        guard !links.isEmpty else { return number }
        guard let link = links.first(where: { $0.activityNumber == number }) else {
            throw refusal(
                "CannotCreateUpdateActivityNotPartOfProject",
                "the provided activity is not part of the provided project")
        }
        guard link.completed != true else {
            throw refusal("TimeEntryCannotBeCreatedUpdatedForCompletedActivity", "the activity is completed")
        }
        return number
    }

    private static func employee(_ number: Int?, _ master: EconomicMasterData) throws(Refusal) -> Int {
        guard let number, let employee = master.employees[number] else {
            throw Refusal(
                code: "EntriesNotAllowedEmployeeNotFound",
                message: "Entries not allowed because the given employee was not found.", property: "employeeNumber")
        }
        guard employee.isBarred != true else {
            throw Refusal(
                code: "EntriesNotAllowedEmployeeIsBarred",
                message: "Entries not allowed because the given employee is barred.", property: "employeeNumber")
        }
        return number
    }
}
