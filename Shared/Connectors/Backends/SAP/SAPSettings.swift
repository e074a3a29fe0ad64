package import BackendProtocol

/// Where an S/4HANA system is and how to talk to it.
package struct SAPSettings: Sendable, CustomStringConvertible {
    /// Scheme, host and port without a path: `https://my300000-api.s4hana.cloud.sap`.
    package var baseURL: String
    /// The communication user of the arrangements SAP_COM_0027 (time sheet), SAP_COM_0308 (projects) and
    /// SAP_COM_0008 (business partners).
    package var user: String
    package var password: String
    package var connectMax: Duration = .seconds(5)
    package var totalMax: Duration = .seconds(30)
    /// Rows asked for at a time (`$top`); at most what the system is ready to give.
    package var pageRowsMax = 500
    /// Rows asked for at a time where the records of a whole company are listed.
    package var listingRowsMax = 5_000
    /// Pages of one listing; a listing that is longer fails rather than being cut.
    package var pagesMax = 200
    /// How far back a person's records are read for suggestions.
    package var suggestionDays = 60
    package var suggestionsMax = 20
    /// `ActivityType` of records that no template gives one, where the controlling area wants one. In a record that is
    /// read it counts as nobody's choice.
    package var activityType: String?
    /// Processing statuses of projects that take no more time, beside those whose time recording is blocked. The
    /// codes are customizing of the system, so none is assumed.
    package var closedProjectStatuses: Set<String> = []
    /// The longest text of an entry. The note is free text in the service; the first model's apps allow 40 characters,
    /// and what a system cuts off a longer note would be the marker.
    ///
    /// ABAP counts UTF-16 code units: a surrogate pair is two characters. Source: ABAP Keyword Documentation, "charlen,
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
        name: "activityType", help: "ActivityType of records that no template gives one", values: .text(lengthMax: 6))
    private static let closedProjectStatusesSetting = BackendSetting(
        name: "closedProjectStatuses", help: "processing statuses of projects that take no time, with commas between",
        values: .texts)
    private static let pageRowsMaxSetting = BackendSetting(
        name: "pageRowsMax", help: "rows that a listing asks for at a time", values: .number(2...5_000))

    /// Takes an environment's settings over; they were checked when they were stored.
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

    /// Without the password, because settings end up in logs.
    package var description: String { "SAP S/4HANA at \(baseURL) as \(user)" }
}
