package import Model
package import Postgres

/// An environment's settings for external delivery of notices, stored by `fieldpost environment deliveries`.
package struct DeliverySettings: Sendable, Equatable {
    package let environment: EnvironmentID
    /// The allowed hosts of people's webhooks, in lower case; empty: webhooks are disabled.
    package var webhookHosts: [String] = []
    /// Sealed.
    package var webhookSecret: Bytea?
    /// Whether webhooks and push services may have addresses outside the public Internet.
    package var allowsPrivate = false
    /// The URL of the mail server; `nil`: e-mail is disabled.
    package var mailServer: String?
    package var mailUser: String?
    /// Sealed.
    package var mailPassword: Bytea?
    /// The sender of e-mails.
    package var mailFrom: String?
    /// The contact that push services get; `nil`: web push is disabled.
    package var pushContact: String?
    /// The public key that browsers bind their subscriptions to.
    package var pushPublicKey: String?
    /// Sealed.
    package var pushKey: Bytea?

    /// The sender at APNs; `nil`: native push for Apple's systems is disabled.
    package var apns: APNs?
    /// The sender at FCM; `nil`: native push through Firebase is disabled.
    package var fcm: FCM?

    /// The sender at Apple Push Notification service.
    package struct APNs: Sendable, Equatable {
        /// The bundle id of the app.
        package var topic: String
        package var team: String
        package var keyID: String
        /// Sealed.
        package var key: Bytea
        package var server: String

        /// The server for apps of the App Store, of TestFlight and of enterprise distribution.
        package static let defaultServer = "https://api.push.apple.com"

        package init(topic: String, team: String, keyID: String, key: Bytea, server: String) {
            (self.topic, self.team, self.keyID, self.key, self.server) = (topic, team, keyID, key, server)
        }
    }

    /// The sender at Firebase Cloud Messaging.
    package struct FCM: Sendable, Equatable {
        package var project: String
        /// The service account's key. Sealed.
        package var account: Bytea
        package var server: String

        package static let defaultServer = "https://fcm.googleapis.com"

        package init(project: String, account: Bytea, server: String) {
            (self.project, self.account, self.server) = (project, account, server)
        }
    }

    /// The limit of webhook hosts per environment.
    package static let webhookHostsMax = 64

    /// Creates settings with everything disabled.
    package init(environment: EnvironmentID) { self.environment = environment }

    /// Whether a person's webhook may have this address.
    package func allows(webhook address: SecureAddress) -> Bool { webhookHosts.contains(address.host) }

    /// Whether devices with this push service are notified.
    package func offers(_ service: DeviceTarget.Service) -> Bool {
        switch service {
        case .apns: apns != nil
        case .fcm: fcm != nil
        }
    }

    // MARK: Storage

    /// Loads an environment's settings.
    ///
    /// - Returns: `nil` if none are stored.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> DeliverySettings? {
        let rows = try connection.run(
            """
            SELECT webhook_hosts, webhook_secret, allows_private, smtp_url, smtp_user, smtp_password, mail_from,
                push_contact, push_public_key, push_key, apns_topic, apns_team_id, apns_key_id, apns_key, apns_server,
                fcm_project, fcm_account, fcm_server
            FROM backend.delivery WHERE environment_id = \(environment.rawValue)
            """)
        guard var columns = rows.first?.columns else { return nil }
        var settings = DeliverySettings(environment: environment)
        settings.webhookHosts = try columns.next()
        settings.webhookSecret = try columns.next()
        settings.allowsPrivate = try columns.next()
        settings.mailServer = try columns.next()
        settings.mailUser = try columns.next()
        settings.mailPassword = try columns.next()
        settings.mailFrom = try columns.next()
        settings.pushContact = try columns.next()
        settings.pushPublicKey = try columns.next()
        settings.pushKey = try columns.next()
        let (topic, team, keyID): (String?, String?, String?) = (
            try columns.next(), try columns.next(), try columns.next()
        )
        let (key, server): (Bytea?, String?) = (try columns.next(), try columns.next())
        if let topic, let team, let keyID, let key, let server {
            settings.apns = APNs(topic: topic, team: team, keyID: keyID, key: key, server: server)
        }
        let (project, account, url): (String?, Bytea?, String?) = (
            try columns.next(), try columns.next(), try columns.next()
        )
        if let project, let account, let url { settings.fcm = FCM(project: project, account: account, server: url) }
        try columns.end()
        return settings
    }

    /// Returns the statement that stores all settings.
    package func save() -> Statement {
        """
        INSERT INTO backend.delivery (environment_id, webhook_hosts, webhook_secret, allows_private, smtp_url,
            smtp_user, smtp_password, mail_from, push_contact, push_public_key, push_key, apns_topic, apns_team_id,
            apns_key_id, apns_key, apns_server, fcm_project, fcm_account, fcm_server)
        VALUES (\(environment.rawValue), \(webhookHosts), \(webhookSecret), \(allowsPrivate), \(mailServer),
            \(mailUser), \(mailPassword), \(mailFrom), \(pushContact), \(pushPublicKey), \(pushKey),
            \(apns?.topic), \(apns?.team), \(apns?.keyID), \(apns?.key), \(apns?.server), \(fcm?.project),
            \(fcm?.account), \(fcm?.server))
        ON CONFLICT (environment_id) DO UPDATE SET webhook_hosts = excluded.webhook_hosts,
            webhook_secret = excluded.webhook_secret, allows_private = excluded.allows_private,
            smtp_url = excluded.smtp_url, smtp_user = excluded.smtp_user, smtp_password = excluded.smtp_password,
            mail_from = excluded.mail_from, push_contact = excluded.push_contact,
            push_public_key = excluded.push_public_key, push_key = excluded.push_key,
            apns_topic = excluded.apns_topic, apns_team_id = excluded.apns_team_id,
            apns_key_id = excluded.apns_key_id, apns_key = excluded.apns_key, apns_server = excluded.apns_server,
            fcm_project = excluded.fcm_project, fcm_account = excluded.fcm_account, fcm_server = excluded.fcm_server
        """
    }

    /// Returns the statement that deletes an environment's settings.
    package static func remove(from environment: EnvironmentID) -> Statement {
        "DELETE FROM backend.delivery WHERE environment_id = \(environment.rawValue)"
    }
}
