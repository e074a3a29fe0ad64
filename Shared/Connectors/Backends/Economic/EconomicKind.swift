internal import BackendProtocol

extension BackendKind {
    /// e-conomic, which needs two tokens instead of a user and a password.
    static let economic = BackendKind(
        EconomicReporting.vocabulary, needsUser: false,
        passwordProblem: { password in
            EconomicSettings(baseURL: "", password: password) == nil
                ? "is not appSecretToken:agreementGrantToken" : nil
        },
        make: { access in
            guard var settings = EconomicSettings(baseURL: access.url, password: access.password) else { return nil }
            settings.totalMax = access.callMax
            settings.apply(BackendSettingValues(values: access.settings))
            return EconomicBackend(settings, templates: access.templates, client: access.client, today: access.today)
        })
}
