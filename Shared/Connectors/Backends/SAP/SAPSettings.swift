package import BackendProtocol

/// The address, credentials and limits of an S/4HANA system.
package struct SAPSettings: Sendable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://my300000-api.s4hana.cloud.sap`.
    package var baseURL: String
    /// The communication user of the arrangements SAP_COM_0027 (time sheet), SAP_COM_0308 (projects) and
    /// SAP_COM_0008 (business partners).
    package var user: String
    package var password: String
    package var connectMax: Duration = .seconds(5)
    package var totalMax: Duration = .seconds(30)
    /// Rows per request (`$top`); at most the system's own limit.
    package var pageRowsMax = 500
    /// Rows per request in a listing of a company's records.
    package var listingRowsMax = 5_000
    /// Maximum number of pages of a listing; a longer listing fails instead of being truncated.
    package var pagesMax = 200
    /// Past days whose records determine suggestions.
    package var suggestionDays = 60
    package var suggestionsMax = 20
    /// `ActivityType` of records without one from their template, if the controlling area requires it. When it is read
    /// back, it does not count as a choice.
    package var activityType: String?
    /// Processing statuses of projects that accept no more time, in addition to projects with blocked time recording.
    /// The codes are customizing of the system, so there is no default.
    package var closedProjectStatuses: Set<String> = []
    /// The maximum length of an entry's text. The note is free text in the service. The first model's apps allow 40
    /// characters, and a system that truncates a longer note removes the marker.
    ///
    /// ABAP counts UTF-16 code units: a surrogate pair is two characters. Source: ABAP Keyword Documentation, "charlen,
    /// dbmaxlen, numofchar, strlen".
    /// dbmaxlen, numofchar, strlen".
    package var textLimit = TextLimit(40, .utf16)

    package init(baseURL: String, user: String, password: String) {
        self.baseURL = baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL
        self.user = user
        self.password = password
    }

    static let all: [BackendSetting] = [
        activityTypeSetting, closedProjectStatusesSetting, .suggestionDays, .suggestionsMax, pageRowsMaxSetting,
        .pagesMax, .textLengthMax, .textUnit,
    ]
    private static let activityTypeSetting = BackendSetting(
        name: "activityType", help: "ActivityType of records without one from their template",
        values: .text(lengthMax: 6))
    private static let closedProjectStatusesSetting = BackendSetting(
        name: "closedProjectStatuses", help: "processing statuses of projects that accept no time, comma-separated",
        values: .texts)
    private static let pageRowsMaxSetting = BackendSetting(
        name: "pageRowsMax", help: "rows per request of a listing", values: .number(2...5_000))

    /// Applies an environment's settings, which were validated when they were stored.
    mutating func apply(_ settings: BackendSettingValues) {
        if let value = settings.values[Self.activityTypeSetting.name] { activityType = value.isEmpty ? nil : value }
        if let value = settings.values[Self.closedProjectStatusesSetting.name] {
            closedProjectStatuses = Set(value.split(separator: ",").map { $0.filter { $0 != " " } })
        }
        settings.apply(.suggestionDays, to: &suggestionDays)
        settings.apply(.suggestionsMax, to: &suggestionsMax)
        settings.apply(Self.pageRowsMaxSetting, to: &pageRowsMax)
        settings.apply(.pagesMax, to: &pagesMax)
        settings.apply(to: &textLimit)
    }

    /// A description without the password, because settings are logged.
    package var description: String { "SAP S/4HANA at \(baseURL) as \(user)" }
}
