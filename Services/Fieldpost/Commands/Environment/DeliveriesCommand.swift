import ArgumentParser
import Audit
import CommandLineSupport
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
        commandName: "deliveries", abstract: "Manage webhooks, e-mail and push messages for notices.",
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
        let smtp, smtpUser, mailFrom, pushContact, pushKey, apnsTopic, apnsKeyId, apnsServer: String?
        let fcmProject, fcmServer: String?
    }

    static func show(_ settings: DeliverySettings, _ output: OutputOptions) throws {
        let row = Row(
            webhookHosts: settings.webhookHosts, privateAddresses: settings.allowsPrivate, smtp: settings.mailServer,
            smtpUser: settings.mailUser, mailFrom: settings.mailFrom, pushContact: settings.pushContact,
            pushKey: settings.pushPublicKey, apnsTopic: settings.apns?.topic, apnsKeyId: settings.apns?.keyID,
            apnsServer: settings.apns?.server, fcmProject: settings.fcm?.project, fcmServer: settings.fcm?.server)
        let lines: [(String, String)] = [
            ("webhooks on", row.webhookHosts.isEmpty ? "no host" : row.webhookHosts.joined(separator: ", ")),
            ("private addresses", row.privateAddresses ? "allowed" : "not allowed"),
            ("mail server", row.smtp ?? "none"), ("mail user", row.smtpUser ?? "-"),
            ("e-mails from", row.mailFrom ?? "-"),
            ("push services write to", row.pushContact ?? "none: web push is disabled"),
            ("browsers subscribe with", row.pushKey ?? "-"), ("app at APNs", row.apnsTopic ?? "none"),
            ("key of APNs", row.apnsKeyId ?? "-"), ("server of APNs", row.apnsServer ?? "-"),
            ("project at FCM", row.fcmProject ?? "none"), ("server of FCM", row.fcmServer ?? "-"),
        ]
        try output.show([row], Table(["SETTING", "VALUE"], lines) { [$0.0, $0.1] })
    }
}
