import Access
import ArgumentParser
import CommandLineSupport
import Model
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment devices`: lists device credentials.
    struct Devices: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices that renew their tokens without a login.",
            discussion: "Revoke one with: environment revoke NAME EMAIL --device NUMBER.")
        @Argument(help: "The environment.") var name: String
        @Argument(help: "Limit to these e-mail addresses.") var emails: [String] = []
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            guard let environment = try EnvironmentStore.load(name, on: &connection)?.id else {
                throw CommandFailure("environment \(name) does not exist")
            }
            let people =
                emails.isEmpty ? nil : try EnvironmentStore.people(emails, in: environment, on: &connection)
            let devices = try RefreshTokenStore.devices(of: people, in: environment, on: &connection)
            var table = Table(
                [("NUMBER", .right), ("PERSON", .left), ("LAST USED", .left), ("DEVICE", .left)], empty: "no device")
            for device in devices { table.add([String(device.number), device.email, device.usedAt, device.device]) }
            try output.show(devices, table)
        }
    }
}
