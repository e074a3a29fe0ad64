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
    /// Pages of one listing; a listing that is longer fails rather than being cut.
    package var pagesMax = 200
    /// How far back a person's records are read for suggestions.
    package var suggestionDays = 60
    package var suggestionsMax = 20
    /// `ActivityType` of every record, where the controlling area wants one.
    package var activityType: String?
    /// Processing statuses of projects that take no more time, beside those whose time recording is blocked. The
    /// codes are customizing of the system, so none is assumed.
    package var closedProjectStatuses: Set<String> = []

    package init(baseURL: String, user: String, password: String) {
        self.baseURL = baseURL.hasSuffix("/") ? String(baseURL.dropLast()) : baseURL
        self.user = user
        self.password = password
    }

    /// Without the password, because settings end up in logs.
    package var description: String { "SAP S/4HANA at \(baseURL) as \(user)" }
}
