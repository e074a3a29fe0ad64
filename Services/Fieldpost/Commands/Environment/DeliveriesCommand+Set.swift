import ArgumentParser
import Audit
import CommandLineSupport
import Crypto
import Deliveries
import Essentials
import FoundationEssentials
import Model
import Postgres
import Secrets
import Tenants

extension DeliveriesCommand {
    /// `fieldpost environment deliveries set`.
    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Configure webhooks, e-mail and push messages.",
            discussion: """
                Options that are not given keep their stored values. Webhooks are called on the named hosts only, and \
                get a secret of their own (environment deliveries secret). Web push gets a permanent key of its own. \
                Passwords and keys are not arguments: --smtp-password-from, --apns-key-from and --fcm-account-from \
                name environment variables of this command. Secrets are sealed with the first of FIELDPOST_SECRET_KEYS.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Option(
            help: ArgumentHelp("Allow webhooks on this host; may be repeated. Replaces the list.", valueName: "host"))
        var webhookHost: [String] = []
        @Flag(help: "Disable webhooks.") var noWebhooks = false
        @Option(
            help: ArgumentHelp("Mail server: smtp://HOST:587 (STARTTLS) or smtps://HOST:465.", valueName: "url"))
        var smtp: String?
        @Option(help: "User at the mail server.") var smtpUser: String?
        @Option(help: ArgumentHelp("Environment variable with the mail user's password.", valueName: "variable"))
        var smtpPasswordFrom: String?
        @Option(help: ArgumentHelp("Sender address of e-mails.", valueName: "address")) var mailFrom: String?
        @Flag(help: "Disable e-mail.") var noEmail = false
        @Option(
            help: ArgumentHelp("Contact for push services: mailto:it@example.com or an https URL.", valueName: "url"))
        var pushContact: String?
        @Flag(help: "Disable web push. The key is kept.") var noPush = false
        @OptionGroup var native: NativePushOptions
        @Flag(inversion: .prefixedNo, help: "Allow receivers with private addresses.") var privateAddresses: Bool?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            for host in webhookHost where SecureAddress("https://\(host)")?.host != EmailAddress.lowered(host) {
                throw ValidationError("--webhook-host \(host) is not a host name")
            }
            if webhookHost.count > DeliverySettings.webhookHostsMax {
                throw ValidationError("--webhook-host: at most \(DeliverySettings.webhookHostsMax) hosts")
            }
            if let smtp, !MailServer.isUsable(smtp) {
                throw ValidationError("--smtp \(smtp) is not smtp://host:port or smtps://host:port")
            }
            if let mailFrom, EmailAddress(mailFrom) == nil {
                throw ValidationError("--mail-from \(mailFrom) is not an e-mail address")
            }
            if let pushContact, !Self.isContact(pushContact) {
                throw ValidationError("--push-contact \(pushContact) is not mailto:address or an https address")
            }
            guard !(noWebhooks && !webhookHost.isEmpty), !(noEmail && (smtp ?? smtpUser ?? mailFrom) != nil),
                !(noPush && pushContact != nil), !native.contradicts, smtpUser?.isEmpty != true
            else { throw ValidationError("give the options of a channel or disable it, not both") }
        }

        private static func isContact(_ text: String) -> Bool {
            text.hasPrefix("mailto:") ? EmailAddress(String(text.dropFirst(7))) != nil : SecureAddress(text) != nil
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            try EnvironmentStore.lock(name, on: &connection)
            let id = try EnvironmentStore.find(name, on: &connection)
            let stored = try DeliverySettings.load(id, on: &connection) ?? DeliverySettings(environment: id)
            let settings = try changed(stored)
            try connection.run([
                settings.save(),
                Administrator.commandLine.audit(.environmentChanged, name, in: id, detail: ["changed": "deliveries"]),
            ])
            try DeliveriesCommand.show(settings, output)
        }

        /// Returns the stored settings with the given options applied.
        private func changed(_ stored: DeliverySettings) throws -> DeliverySettings {
            var settings = stored
            if let privateAddresses { settings.allowsPrivate = privateAddresses }
            if noWebhooks { settings.webhookHosts = [] }
            if !webhookHost.isEmpty {
                settings.webhookHosts = Swift.Set(webhookHost.map(EmailAddress.lowered)).sorted()
                if settings.webhookSecret == nil {
                    settings.webhookSecret = try DeliveriesCommand.sealed(
                        Array(WebhookSignature.newSecret().utf8), .webhook, of: stored.environment)
                }
            }
            try changeMail(&settings)
            try native.apply(to: &settings)
            if noPush { settings.pushContact = nil }
            if let pushContact {
                settings.pushContact = pushContact
                if settings.pushKey == nil {
                    let key = P256.Signing.PrivateKey()
                    settings.pushPublicKey = PushSender(key: key, contact: pushContact).applicationServerKey
                    settings.pushKey = try DeliveriesCommand.sealed(
                        Array(key.rawRepresentation), .push, of: stored.environment)
                }
            }
            return settings
        }

        private func changeMail(_ settings: inout DeliverySettings) throws {
            if noEmail {
                (settings.mailServer, settings.mailUser, settings.mailPassword, settings.mailFrom) = (
                    nil, nil, nil, nil
                )
            }
            if let smtp { settings.mailServer = smtp }
            if let mailFrom { settings.mailFrom = EmailAddress.lowered(mailFrom) }
            if let smtpUser { settings.mailUser = smtpUser }
            if let smtpPasswordFrom {
                settings.mailPassword = try DeliveriesCommand.sealed(
                    Array(try SecretOptions.value(of: smtpPasswordFrom).utf8), .mail, of: settings.environment)
            }
            if settings.mailServer != nil, settings.mailFrom == nil { throw CommandFailure("--smtp needs --mail-from") }
            if settings.mailUser != nil, settings.mailPassword == nil {
                throw CommandFailure("--smtp-user needs --smtp-password-from")
            }
        }
    }
}
