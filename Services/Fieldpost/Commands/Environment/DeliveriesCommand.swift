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
import ServiceSettings
import Tenants

/// `fieldpost environment deliveries`: the channels that deliver notices to an environment's people.
struct DeliveriesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deliveries", abstract: "Manage webhooks, e-mail and web push for notices.",
        subcommands: [Set.self, Show.self, Secret.self, Remove.self])

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the delivery settings of an environment.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let id = try EnvironmentStore.find(name, on: &connection)
            try DeliveriesCommand.show(
                try DeliverySettings.load(id, on: &connection) ?? DeliverySettings(environment: id), output)
        }
    }

    struct Secret: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the secret that signs webhooks, for their receivers.",
            discussion: """
                With --renew a new secret is used immediately. Distribute it to all receivers; meanwhile they should \
                accept both.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Flag(help: "Create a new secret.") var renew = false
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            if renew { try EnvironmentStore.lock(name, on: &connection) }
            let id = try EnvironmentStore.find(name, on: &connection)
            guard var settings = try DeliverySettings.load(id, on: &connection), let sealed = settings.webhookSecret
            else { throw CommandFailure("\(name) has no webhooks: environment deliveries set --webhook-host") }
            guard renew else {
                return print(
                    try SecretOptions.box().openText(sealed.bytes, at: SecretContext.delivery(.webhook, in: id)))
            }
            let secret = WebhookSignature.newSecret()
            settings.webhookSecret = try DeliveriesCommand.sealed(Array(secret.utf8), .webhook, of: id)
            try connection.run([
                settings.save(),
                Administrator.commandLine.audit(
                    .environmentChanged, name, in: id, detail: ["changed": "webhook secret"]),
            ])
            print(secret)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the delivery settings and their secrets.",
            discussion: """
                Notices stay in people's realms; pending deliveries are dropped. Browsers must subscribe again if a \
                new key is created.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            try EnvironmentFeature.remove("deliveries", from: name, database) { id, connection in
                try DeliverySettings.load(id, on: &connection) == nil ? nil : [DeliverySettings.remove(from: id)]
            }
        }
    }

    static func sealed(_ secret: [UInt8], _ which: SecretContext.DeliverySecret, of id: EnvironmentID) throws -> Bytea {
        let secrets = try SecretOptions.box()
        guard secrets.canSeal else { throw CommandFailure("\(Setting.secretKeys.variable) is not set") }
        return Bytea(try secrets.seal(secret, at: SecretContext.delivery(which, in: id)))
    }

    /// The stored settings for output, without the secrets.
    private struct Row: Encodable {
        let webhookHosts: [String]
        let privateAddresses: Bool
        let smtp, smtpUser, mailFrom, pushContact, pushKey: String?
    }

    static func show(_ settings: DeliverySettings, _ output: OutputOptions) throws {
        let row = Row(
            webhookHosts: settings.webhookHosts, privateAddresses: settings.allowsPrivate, smtp: settings.mailServer,
            smtpUser: settings.mailUser, mailFrom: settings.mailFrom, pushContact: settings.pushContact,
            pushKey: settings.pushPublicKey)
        let lines: [(String, String)] = [
            ("webhooks on", row.webhookHosts.isEmpty ? "no host" : row.webhookHosts.joined(separator: ", ")),
            ("private addresses", row.privateAddresses ? "allowed" : "not allowed"),
            ("mail server", row.smtp ?? "none"), ("mail user", row.smtpUser ?? "-"),
            ("e-mails from", row.mailFrom ?? "-"),
            ("push services write to", row.pushContact ?? "none: web push is disabled"),
            ("browsers subscribe with", row.pushKey ?? "-"),
        ]
        try output.show([row], Table(["SETTING", "VALUE"], lines) { [$0.0, $0.1] })
    }

    /// `fieldpost environment deliveries set`.
    struct Set: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Configure webhooks, e-mail and web push of an environment.",
            discussion: """
                Options that are not given keep their stored values. Webhooks are called on the named hosts only, and \
                get a secret of their own (environment deliveries secret). Web push gets a permanent key of its own. \
                The mail server's password is not an argument: --smtp-password-from names an environment variable of \
                this command. Secrets are sealed with the first of FIELDPOST_SECRET_KEYS.
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
                !(noPush && pushContact != nil), smtpUser?.isEmpty != true
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
