internal import BackendProtocol

extension BackendKind {
    /// SAP S/4HANA.
    static let sap = BackendKind(SAPReporting.vocabulary, needsUser: true) { access in
        var settings = SAPSettings(baseURL: access.url, user: access.user, password: access.password)
        settings.totalMax = access.callMax
        settings.apply(BackendSettingValues(values: access.settings))
        return SAPBackend(settings, templates: access.templates, client: access.client, today: access.today)
    }
}
