import Essentials
import Model

/// Entities as the three services spell them in JSON.
///
/// Sources: the metadata of API_MANAGE_WORKFORCE_TIMESHEET, API_ENTERPRISE_PROJECT_SRV;v=0002 and
/// API_BUSINESS_PARTNER; fields that a time sheet client has no use for are left out, none is invented.
enum SAPEntities {
    static func timeSheetEntry(_ record: SAPRecord, operation: String = "") -> [(String, JSONText)] {
        let number = SAPRecord.text(ofNumber: record.number)
        let key =
            "TimeSheetEntryCollection(PersonWorkAgreementExternalID='\(record.person)',"
            + "CompanyCode='\(record.companyCode)',TimeSheetRecord='\(number)')"
        return [
            ("__metadata", metadata(SAPPath.timeSheet, key, type: "API_MANAGE_WORKFORCE_TIMESHEET.TimeSheetEntry")),
            ("TimeSheetDataFields", dataFields(record)),
            ("PersonWorkAgreementExternalID", .string(record.person)),
            ("CompanyCode", .string(record.companyCode)),
            ("TimeSheetRecord", .string(number)),
            ("PersonWorkAgreement", ""),
            ("TimeSheetDate", date(record.date)),
            ("TimeSheetIsReleasedOnSave", .bool(record.releasedOnSave)),
            ("TimeSheetPredecessorRecord", .string(record.predecessor.map(SAPRecord.text(ofNumber:)) ?? "")),
            ("TimeSheetStatus", .string(String(record.status.rawValue))),
            ("TimeSheetIsExecutedInTestRun", false),
            ("TimeSheetOperation", .string(operation)),
        ]
    }

    private static func dataFields(_ record: SAPRecord) -> JSONText {
        let hours = record.hoursText ?? decimal(record.hundredths)
        let assignments = record.assignments ?? [:]
        func assigned(_ field: String) -> (String, JSONText) { (field, .string(assignments[field] ?? "")) }
        return .object([
            (
                "__metadata",
                .object([("type", "API_MANAGE_WORKFORCE_TIMESHEET.TimeSheetDataFields")])
            ),
            ("ControllingArea", ""), assigned("SenderCostCenter"), assigned("ReceiverCostCenter"),
            assigned("InternalOrder"),
            ("ActivityType", .string(record.activityType)), ("WBSElement", .string(record.wbsElement)),
            assigned("WorkItem"), assigned("BillingControlCategory"), ("PurchaseOrder", ""),
            ("PurchaseOrderItem", "00000"),
            assigned("TimeSheetTaskType"), assigned("TimeSheetTaskLevel"), assigned("TimeSheetTaskComponent"),
            ("TimeSheetNote", .string(record.note)), ("RecordedHours", .string(hours)),
            ("RecordedQuantity", .string(hours + "0")), ("HoursUnitOfMeasure", "H"),
            ("RejectionReason", .string(record.rejectionReason ?? "")),
            assigned("TimeSheetWrkLocCode"), assigned("TimeSheetOvertimeCategory"),
        ])
    }

    /// The response to a POST without an operation: the request's values, and no record.
    static func echo(_ request: SAPEntryRequest) -> [(String, JSONText)] {
        [
            ("PersonWorkAgreementExternalID", .string(request.PersonWorkAgreementExternalID ?? "")),
            ("CompanyCode", .string(request.CompanyCode ?? "")),
            ("TimeSheetRecord", ""), ("TimeSheetStatus", ""), ("TimeSheetOperation", ""),
        ]
    }

    static func teamMember(_ member: SAPMasterData.TeamMember) -> [(String, JSONText)] {
        [
            (
                "__metadata",
                metadata(
                    SAPPath.project, "A_EnterpriseProjectTeamMember(guid'\(member.id)')",
                    type: "API_ENTERPRISE_PROJECT_SRV.A_EnterpriseProjectTeamMemberType")
            ),
            ("TeamMemberUUID", .string(member.id)),
            ("BusinessPartnerUUID", .string(member.businessPartner)),
            ("ProjectUUID", .string(member.project)),
        ]
    }

    static func project(_ project: SAPOrganisation.Project, expand: Set<String>) -> [(String, JSONText)] {
        let key = "A_EnterpriseProject(guid'\(project.projectUuid)')"
        let block: JSONText =
            expand.contains("to_EntProjBlkFunc")
            ? .object([
                ("ProjectUUID", .string(project.projectUuid)),
                ("EntProjTimeRecgIsBlkd", .bool(project.timeRecordingBlocked ?? false)),
            ]) : deferred(SAPPath.project, key + "/to_EntProjBlkFunc")
        return [
            (
                "__metadata",
                metadata(SAPPath.project, key, type: "API_ENTERPRISE_PROJECT_SRV.A_EnterpriseProjectType")
            ),
            ("ProjectUUID", .string(project.projectUuid)),
            ("Project", .string(project.project)),
            ("ProjectDescription", .string(project.description)),
            ("ProjectStartDate", project.startDate.flatMap { Day($0) }.map(date) ?? .null),
            ("ProjectEndDate", project.endDate.flatMap { Day($0) }.map(date) ?? .null),
            ("CustomerUUID", project.customerUuid.map { .string($0) } ?? .null),
            ("ProcessingStatus", .string(project.processingStatus ?? "")),
            ("to_EntProjBlkFunc", block),
        ]
    }

    static func element(
        _ element: SAPOrganisation.Element, of project: SAPOrganisation.Project, expand: Set<String>
    ) -> [(String, JSONText)] {
        let key = "A_EnterpriseProjectElement(guid'\(element.projectElementUuid)')"
        let block: JSONText =
            expand.contains("to_EntProjElmntBlkFunc")
            ? .object([
                ("ProjectElementUUID", .string(element.projectElementUuid)),
                ("ProjectUUID", .string(project.projectUuid)),
                ("EntProjTimeRecgIsBlkd", .bool(element.timeRecordingBlocked ?? false)),
            ]) : deferred(SAPPath.project, key + "/to_EntProjElmntBlkFunc")
        return [
            (
                "__metadata",
                metadata(SAPPath.project, key, type: "API_ENTERPRISE_PROJECT_SRV.A_EnterpriseProjectElementType")
            ),
            ("ProjectElementUUID", .string(element.projectElementUuid)),
            ("ProjectElement", .string(element.projectElement)),
            ("ProjectUUID", .string(project.projectUuid)),
            ("ProjectElementDescription", .string(element.description)),
            ("ProcessingStatus", .string(project.processingStatus ?? "")),
            ("to_EntProjElmntBlkFunc", block),
        ]
    }

    static func businessPartner(_ customer: SAPOrganisation.Customer) -> [(String, JSONText)] {
        [
            (
                "__metadata",
                metadata(
                    SAPPath.businessPartner, "A_BusinessPartner('\(customer.businessPartner)')",
                    type: "API_BUSINESS_PARTNER.A_BusinessPartnerType")
            ),
            ("BusinessPartner", .string(customer.businessPartner)),
            ("BusinessPartnerCategory", "2"),
            ("BusinessPartnerFullName", .string(customer.name)),
            ("BusinessPartnerName", .string(customer.name)),
            ("BusinessPartnerUUID", .string(customer.businessPartnerUuid)),
        ]
    }

    /// `{"error":{…}}` of SAP Gateway, each problem a detail.
    static func error(_ messages: [String]) -> JSONText {
        let details = messages.map {
            JSONText.object([
                ("code", "SY/530"), ("message", .string($0)), ("propertyref", ""), ("severity", "error"),
                ("target", ""),
            ])
        }
        return .object([
            (
                "error",
                .object([
                    ("code", "SY/530"),
                    ("message", .object([("lang", "en"), ("value", .string(messages.first ?? ""))])),
                    ("innererror", .object([("errordetails", .array(details))])),
                ])
            )
        ])
    }

    private static func metadata(_ service: String, _ key: String, type: String) -> JSONText {
        .object([
            ("id", .string(service + "/" + key)), ("uri", .string(service + "/" + key)), ("type", .string(type)),
        ])
    }

    private static func deferred(_ service: String, _ path: String) -> JSONText {
        .object([("__deferred", .object([("uri", .string(service + "/" + path))]))])
    }

    private static func date(_ day: Day) -> JSONText { .string("/Date(\(day.daysSinceEpoch * 86_400_000))/") }

    static func decimal(_ hundredths: Int) -> String {
        let size = abs(hundredths)
        let fraction = size % 100
        return (hundredths < 0 ? "-" : "") + "\(size / 100)." + (fraction < 10 ? "0" : "") + String(fraction)
    }
}

/// The paths of the three services.
enum SAPPath {
    static let timeSheet = "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET"
    static let project = "/sap/opu/odata/sap/API_ENTERPRISE_PROJECT_SRV;v=0002"
    static let businessPartner = "/sap/opu/odata/sap/API_BUSINESS_PARTNER"
}
