import Essentials
import Model

/// Entities as the three services spell them in JSON.
///
/// Sources: the metadata of API_MANAGE_WORKFORCE_TIMESHEET, API_ENTERPRISE_PROJECT_SRV;v=0002 and
/// API_BUSINESS_PARTNER; fields that a time sheet client has no use for are left out, none is invented.
enum SAPEntities {
    static func timeSheetEntry(_ record: SAPRecord, operation: String = "") -> JSON {
        let number = SAPRecord.text(ofNumber: record.number)
        let key =
            "TimeSheetEntryCollection(PersonWorkAgreementExternalID='\(record.person)',"
            + "CompanyCode='\(record.companyCode)',TimeSheetRecord='\(number)')"
        return [
            "__metadata": metadata(SAPPath.timeSheet, key, type: "API_MANAGE_WORKFORCE_TIMESHEET.TimeSheetEntry"),
            "TimeSheetDataFields": dataFields(record),
            "PersonWorkAgreementExternalID": .string(record.person),
            "CompanyCode": .string(record.companyCode),
            "TimeSheetRecord": .string(number),
            "PersonWorkAgreement": "",
            "TimeSheetDate": date(record.date),
            "TimeSheetIsReleasedOnSave": .bool(record.releasedOnSave),
            "TimeSheetPredecessorRecord": .string(record.predecessor.map(SAPRecord.text(ofNumber:)) ?? ""),
            "TimeSheetStatus": .string(String(record.status.rawValue)),
            "TimeSheetIsExecutedInTestRun": false,
            "TimeSheetOperation": .string(operation),
        ]
    }

    private static func dataFields(_ record: SAPRecord) -> JSON {
        let hours = record.hoursText ?? Hours(hundredths: record.hundredths).description
        func assigned(_ field: String) -> JSON { .string(record.assignments?[field] ?? "") }
        return [
            "__metadata": ["type": "API_MANAGE_WORKFORCE_TIMESHEET.TimeSheetDataFields"],
            "ControllingArea": "", "SenderCostCenter": assigned("SenderCostCenter"),
            "ReceiverCostCenter": assigned("ReceiverCostCenter"), "InternalOrder": assigned("InternalOrder"),
            "ActivityType": .string(record.activityType), "WBSElement": .string(record.wbsElement),
            "WorkItem": assigned("WorkItem"), "BillingControlCategory": assigned("BillingControlCategory"),
            "PurchaseOrder": "", "PurchaseOrderItem": "00000", "TimeSheetTaskType": assigned("TimeSheetTaskType"),
            "TimeSheetTaskLevel": assigned("TimeSheetTaskLevel"),
            "TimeSheetTaskComponent": assigned("TimeSheetTaskComponent"), "TimeSheetNote": .string(record.note),
            "RecordedHours": .string(hours), "RecordedQuantity": .string(hours + "0"), "HoursUnitOfMeasure": "H",
            "RejectionReason": .string(record.rejectionReason ?? ""),
            "TimeSheetWrkLocCode": assigned("TimeSheetWrkLocCode"),
            "TimeSheetOvertimeCategory": assigned("TimeSheetOvertimeCategory"),
        ]
    }

    /// The response to a POST without an operation: the request's values, and no record.
    static func echo(_ request: SAPEntryRequest) -> JSON {
        [
            "PersonWorkAgreementExternalID": .string(request.PersonWorkAgreementExternalID ?? ""),
            "CompanyCode": .string(request.CompanyCode ?? ""), "TimeSheetRecord": "", "TimeSheetStatus": "",
            "TimeSheetOperation": "",
        ]
    }

    static func teamMember(_ member: SAPMasterData.TeamMember) -> JSON {
        [
            "__metadata": projectMetadata("A_EnterpriseProjectTeamMember", member.id),
            "TeamMemberUUID": .string(member.id), "BusinessPartnerUUID": .string(member.businessPartner),
            "ProjectUUID": .string(member.project),
        ]
    }

    static func project(_ project: SAPOrganisation.Project, expand: Set<String>) -> JSON {
        let block: JSON =
            expand.contains("to_EntProjBlkFunc")
            ? [
                "ProjectUUID": .string(project.projectUuid),
                "EntProjTimeRecgIsBlkd": .bool(project.timeRecordingBlocked ?? false),
            ] : deferred("A_EnterpriseProject", project.projectUuid, "to_EntProjBlkFunc")
        return [
            "__metadata": projectMetadata("A_EnterpriseProject", project.projectUuid),
            "ProjectUUID": .string(project.projectUuid), "Project": .string(project.project),
            "ProjectDescription": .string(project.description),
            "ProjectStartDate": project.startDate.flatMap { Day($0) }.map(date) ?? .null,
            "ProjectEndDate": project.endDate.flatMap { Day($0) }.map(date) ?? .null,
            "CustomerUUID": .text(project.customerUuid), "ProcessingStatus": .string(project.processingStatus ?? ""),
            "to_EntProjBlkFunc": block,
        ]
    }

    static func element(
        _ element: SAPOrganisation.Element, of project: SAPOrganisation.Project, expand: Set<String>
    ) -> JSON {
        let block: JSON =
            expand.contains("to_EntProjElmntBlkFunc")
            ? [
                "ProjectElementUUID": .string(element.projectElementUuid),
                "ProjectUUID": .string(project.projectUuid),
                "EntProjTimeRecgIsBlkd": .bool(element.timeRecordingBlocked ?? false),
            ] : deferred("A_EnterpriseProjectElement", element.projectElementUuid, "to_EntProjElmntBlkFunc")
        return [
            "__metadata": projectMetadata("A_EnterpriseProjectElement", element.projectElementUuid),
            "ProjectElementUUID": .string(element.projectElementUuid),
            "ProjectElement": .string(element.projectElement), "ProjectUUID": .string(project.projectUuid),
            "ProjectElementDescription": .string(element.description),
            "ProcessingStatus": .string(project.processingStatus ?? ""), "to_EntProjElmntBlkFunc": block,
        ]
    }

    static func businessPartner(_ customer: SAPOrganisation.Customer) -> JSON {
        [
            "__metadata": metadata(
                SAPPath.businessPartner, "A_BusinessPartner('\(customer.businessPartner)')",
                type: "API_BUSINESS_PARTNER.A_BusinessPartnerType"),
            "BusinessPartner": .string(customer.businessPartner), "BusinessPartnerCategory": "2",
            "BusinessPartnerFullName": .string(customer.name), "BusinessPartnerName": .string(customer.name),
            "BusinessPartnerUUID": .string(customer.businessPartnerUuid),
        ]
    }

    /// `{"error":{…}}` of SAP Gateway, each problem a detail.
    static func error(_ messages: [String]) -> JSON {
        let details = messages.map { message -> JSON in
            ["code": "SY/530", "message": .string(message), "propertyref": "", "severity": "error", "target": ""]
        }
        return [
            "error": [
                "code": "SY/530", "message": ["lang": "en", "value": .string(messages.first ?? "")],
                "innererror": ["errordetails": .array(details)],
            ]
        ]
    }

    private static func metadata(_ service: String, _ key: String, type: String) -> JSON {
        let uri = service + "/" + key
        return ["id": .string(uri), "uri": .string(uri), "type": .string(type)]
    }

    private static func projectMetadata(_ set: String, _ id: String) -> JSON {
        metadata(SAPPath.project, "\(set)(guid'\(id)')", type: "API_ENTERPRISE_PROJECT_SRV.\(set)Type")
    }

    private static func deferred(_ set: String, _ id: String, _ path: String) -> JSON {
        ["__deferred": ["uri": .string("\(SAPPath.project)/\(set)(guid'\(id)')/\(path)")]]
    }

    private static func date(_ day: Day) -> JSON { .string("/Date(\(day.daysSinceEpoch * 86_400_000))/") }
}

/// The paths of the three services.
enum SAPPath {
    static let timeSheet = "/sap/opu/odata/sap/API_MANAGE_WORKFORCE_TIMESHEET"
    static let project = "/sap/opu/odata/sap/API_ENTERPRISE_PROJECT_SRV;v=0002"
    static let businessPartner = "/sap/opu/odata/sap/API_BUSINESS_PARTNER"
}
