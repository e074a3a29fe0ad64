package import Model
package import Postgres
import Secrets

/// What an environment offers of carrying notices outside, as `fieldpost environment deliveries` stored it.
package struct DeliverySettings: Sendable, Equatable {
    /// A secret, and what it is sealed for.
    package enum Secret: String, Sendable, CaseIterable {
        /// What webhooks are signed with.
        case webhook
        /// The password at the mail server.
        case mail
        /// The private key that says who sends to push services, 32 bytes.
        case push

        package func context(_ environment: EnvironmentID) -> String {
            SecretContext.delivery(rawValue, in: environment)
        }
    }

    package let environment: EnvironmentID
    /// Hosts that people's webhooks may be on, in lower case; none: there are no webhooks.
    package var webhookHosts: [String] = []
    /// Sealed.
    package var webhookSecret: Bytea?
    /// Whether webhooks and push services may have addresses that are not of the public Internet.
    package var allowsPrivate = false
    /// Of the mail server; `nil`: there is no e-mail.
    package var mailServer: String?
    package var mailUser: String?
    /// Sealed.
    package var mailPassword: Bytea?
    /// Whom e-mails are from.
    package var mailFrom: String?
    /// Whom a push service writes to; `nil`: there is no web push.
    package var pushContact: String?
    /// What browsers bind their subscriptions to.
    package var pushPublicKey: String?
    /// Sealed.
    package var pushKey: Bytea?

    /// Hosts of one environment.
    package static let webhookHostsMax = 64

    /// One that is not stored yet: it offers nothing.
    package init(environment: EnvironmentID) { self.environment = environment }

    /// Whether a person's webhook may be called.
    package func allows(webhook address: SecureAddress) -> Bool { webhookHosts.contains(address.host) }

    // MARK: Storing

    /// - Returns: `nil` when nothing is stored of the environment.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> DeliverySettings? {
        let rows = try connection.run(
            """
            SELECT webhook_hosts, webhook_secret, allows_private, smtp_url, smtp_user, smtp_password, mail_from,
                push_contact, push_public_key, push_key
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
        try columns.end()
        return settings
    }

    /// Stores all of it.
    package func save() -> Statement {
        """
        INSERT INTO backend.delivery (environment_id, webhook_hosts, webhook_secret, allows_private, smtp_url,
            smtp_user, smtp_password, mail_from, push_contact, push_public_key, push_key)
        VALUES (\(environment.rawValue), \(webhookHosts), \(webhookSecret), \(allowsPrivate), \(mailServer),
            \(mailUser), \(mailPassword), \(mailFrom), \(pushContact), \(pushPublicKey), \(pushKey))
        ON CONFLICT (environment_id) DO UPDATE SET webhook_hosts = excluded.webhook_hosts,
            webhook_secret = excluded.webhook_secret, allows_private = excluded.allows_private,
            smtp_url = excluded.smtp_url, smtp_user = excluded.smtp_user, smtp_password = excluded.smtp_password,
            mail_from = excluded.mail_from, push_contact = excluded.push_contact,
            push_public_key = excluded.push_public_key, push_key = excluded.push_key
        """
    }

    /// Removes it.
    package static func remove(from environment: EnvironmentID) -> Statement {
        "DELETE FROM backend.delivery WHERE environment_id = \(environment.rawValue)"
    }
}
