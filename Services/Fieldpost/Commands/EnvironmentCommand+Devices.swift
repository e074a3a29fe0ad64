import Access
import ArgumentParser
import CommandLineSupport
import Model
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment devices`: which devices come back without their person's login.
    struct Devices: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices that renew their token by themselves.",
            discussion: "environment revoke NAME EMAIL --device NUMBER shuts one of them out.")
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail addresses; everybody's devices without them.") var emails: [String] = []
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            guard let environment = try EnvironmentStore.load(name, on: &connection)?.id else {
                throw CommandFailure("there is no environment \(name)")
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
